package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreException;

/** The lock could not be had in time; the work was not begun. In other languages: {@code LockUnavailableError}. */
public final class LockUnavailableException extends ZLinkStoreException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param namespace the namespace of the lock
     * @param key the key of the lock
     */
    public LockUnavailableException(String namespace, String key) {
        super(
                "LOCK_UNAVAILABLE",
                "notApplied",
                true,
                "the lock \"" + key + "\" in namespace \"" + namespace + "\" could not be had in time",
                null);
    }
}
