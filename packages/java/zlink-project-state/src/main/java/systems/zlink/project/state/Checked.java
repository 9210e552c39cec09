package systems.zlink.project.state;

import java.util.function.Supplier;

/** Calls wrong arguments by the name that this package has for them. */
final class Checked {
    private Checked() {}

    static <T> T call(Supplier<T> call) {
        try {
            return call.get();
        } catch (IllegalArgumentException wrong) {
            throw new ValidationException(wrong.getMessage(), null);
        }
    }

    static <T> T given(String name, T value) {
        if (value == null) {
            throw new NullPointerException(name + " must not be null");
        }
        return value;
    }
}
