package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreException;

/** The expected version was not there; nothing was changed. In other languages: {@code StateConflictError}. */
public final class StateConflictException extends ZLinkStoreException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     */
    public StateConflictException() {
        super("STATE_CONFLICT", "notApplied", false, "the entry does not have the expected version; read it and try again", null);
    }
}
