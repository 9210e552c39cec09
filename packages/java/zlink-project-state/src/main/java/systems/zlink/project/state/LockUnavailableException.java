package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreException;

/** The lock could not be had in time; the work was not begun. In other languages: {@code LockUnavailableError}. */
public final class LockUnavailableException extends ZLinkStoreException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param key the key of the lock
     */
    public LockUnavailableException(String key) {
        super("LOCK_UNAVAILABLE", "notApplied", true, "the lock \"" + key + "\" could not be had in time", null);
    }
}
