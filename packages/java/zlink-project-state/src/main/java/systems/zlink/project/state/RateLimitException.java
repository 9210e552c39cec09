package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreException;

/** The project has 100,000 live entries, and this would be one more; nothing was changed. In other languages: {@code RateLimitError}. */
public final class RateLimitException extends ZLinkStoreException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     */
    public RateLimitException() {
        super("RATE_LIMIT", "notApplied", true, "the project has 100000 live state entries; delete some, or let some expire", null);
    }
}
