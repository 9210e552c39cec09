package systems.zlink.store;

import java.util.concurrent.TimeoutException;

/** The operation timeout of an official store passed. */
public final class ZLinkStoreTimeoutException extends TimeoutException implements ZLinkStoreFailure {
    private static final long serialVersionUID = 1L;

    /** What became of the operation. */
    private final String outcome;

    /**
     * Makes one.
     *
     * @param outcome see {@link #outcome()}
     * @param message words for a person
     */
    public ZLinkStoreTimeoutException(String outcome, String message) {
        super(message);
        this.outcome = outcome;
    }

    @Override
    public String code() {
        return "TIMEOUT";
    }

    @Override
    public String outcome() {
        return outcome;
    }

    @Override
    public boolean retryable() {
        return true;
    }
}
