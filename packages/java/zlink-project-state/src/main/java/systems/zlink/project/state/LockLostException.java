package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreException;

/** The lease was released, has expired, or never was. In other languages: {@code LockLostError}. */
public final class LockLostException extends ZLinkStoreException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     */
    public LockLostException() {
        super("LOCK_LOST", "notApplied", false, "the lease is lost: it was released, or it has expired", null);
    }
}
