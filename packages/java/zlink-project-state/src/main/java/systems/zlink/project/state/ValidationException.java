package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreFailure;

/** An argument is outside the limits; nothing was sent. The message begins with its name. In other languages: {@code ValidationError}. */
public final class ValidationException extends IllegalArgumentException implements ZLinkStoreFailure {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param message words for a person, which begin with the argument's name
     * @param cause what lies behind it, or {@code null}
     */
    public ValidationException(String message, Throwable cause) {
        super(message, cause);
    }

    @Override
    public String code() {
        return "INVALID_ARGUMENT";
    }

    @Override
    public String outcome() {
        return "notApplied";
    }

    @Override
    public boolean retryable() {
        return false;
    }
}
