package systems.zlink.project.state;

import systems.zlink.store.ZLinkStoreException;

/** The expected version was not there; nothing was changed. In other languages: {@code StateConflictError}. */
public final class StateConflictException extends ZLinkStoreException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param namespace the namespace of the entry
     * @param key the key of the entry
     * @param expectedVersion the version that was expected
     */
    public StateConflictException(String namespace, String key, long expectedVersion) {
        super("STATE_CONFLICT", "notApplied", false, said(namespace, key, expectedVersion), null);
    }

    private static String said(String namespace, String key, long expectedVersion) {
        String entry = "entry \"" + key + "\" in namespace \"" + namespace + "\"";
        return (expectedVersion == 0
                        ? "there is an " + entry + ", expectedVersion is 0"
                        : "the " + entry + " does not have the expected version " + expectedVersion)
                + "; read it and try again";
    }
}
