package systems.zlink.store.internal;

/** Finds what is missing. All other checks of arguments are native code's. */
final class Arguments {
    private Arguments() {}

    static <T> T given(String name, T value) {
        if (value == null) {
            throw new NullPointerException(name + " must not be null");
        }
        return value;
    }

    /** The text of a {@code holder} such as a key. */
    static String text(String name, Object holder, String value) {
        given(name, holder);
        if (value == null) {
            throw new NullPointerException(name + ".value must not be null");
        }
        return value;
    }

    /** An element of a list, or a part of one. */
    static NullPointerException missing(String list, int index, String part) {
        return new NullPointerException(list + "[" + index + "]" + (part == null ? "" : "." + part) + " must not be null");
    }
}
