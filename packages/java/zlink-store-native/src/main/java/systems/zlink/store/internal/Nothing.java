package systems.zlink.store.internal;

/** Answers that are no more than what they are called. */
public enum Nothing {
    /** There is no such entry or lease, or the lock could not be had. */
    ABSENT,
    /** The expected version was not there. */
    VERSION_CONFLICT,
    /** There is no place for one entry more. */
    LIMIT_REACHED,
    /** The lease is lost. */
    LOST
}
