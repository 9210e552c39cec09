package systems.zlink.store;

/** Why an operation of an official store gave no result. Closed results (missing, conflict, expired) are never exceptions. */
public class ZLinkStoreException extends RuntimeException implements ZLinkStoreFailure {
    private static final long serialVersionUID = 1L;

    /** What kind of failure. */
    private final String code;

    /** What became of the operation. */
    private final String outcome;

    /** Whether trying again makes sense. */
    private final boolean retryable;

    /**
     * Makes one.
     *
     * @param code see {@link #code()}
     * @param outcome see {@link #outcome()}
     * @param retryable see {@link #retryable()}
     * @param message words for a person
     * @param cause what lies behind it, or {@code null}
     */
    public ZLinkStoreException(String code, String outcome, boolean retryable, String message, Throwable cause) {
        super(message, cause);
        this.code = code;
        this.outcome = outcome;
        this.retryable = retryable;
    }

    @Override
    public String code() {
        return code;
    }

    @Override
    public String outcome() {
        return outcome;
    }

    @Override
    public boolean retryable() {
        return retryable;
    }
}
