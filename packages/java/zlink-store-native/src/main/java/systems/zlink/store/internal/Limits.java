package systems.zlink.store.internal;

/** Limits of the contract that Java needs, so as not to copy what is too large anyway. Native code knows them. */
final class Limits {
    /** The largest value. */
    static final long VALUE = Native.limit(Native.LIMIT_VALUE);

    /** The most bytes of one write. */
    static final long WRITE = Native.limit(Native.LIMIT_WRITE);

    private Limits() {}
}
