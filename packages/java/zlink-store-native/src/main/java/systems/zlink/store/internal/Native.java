package systems.zlink.store.internal;

/** The native methods. Nothing here may be called before {@link Library#load()}. */
final class Native {
    static final int MEMORY = 0;
    static final int FILE = 1;
    static final int REDIS = 2;

    static final int LIMIT_VALUE = 0;
    static final int LIMIT_WRITE = 1;

    private Native() {}

    /** The version of the library. */
    static native byte[] version();

    /** A limit of the contract. */
    static native long limit(int which);

    /** Makes a store at the address and with the key prefix that {@code texts} has: an {@link Wire#OPENED} record, or an error. */
    static native byte[] open(boolean relocation, int place, byte[] texts, int length, long operationTimeoutMs);

    /** Makes a project at the URL, of the workspace and with the name that {@code texts} has: as {@link #open}. */
    static native byte[] openProject(byte[] texts, int length, long operationTimeoutMs);

    /** Makes the locks of a project for an invocation that ends in {@code withinMs} (below 0: nobody knows when): as {@link #open}. */
    static native byte[] locks(int project, long withinMs);

    /**
     * Takes one request, which begins at once, or with {@code hold} at the next {@link #goOn} at the latest.
     *
     * @return the answer's record if it is there at once; {@code null} if it comes later
     */
    static native byte[] submit(int kind, int ticket, int store, byte[] fields, int length, byte[][] beside, boolean hold);

    /** Begins what was held. */
    static native void goOn();

    /** Ends one operation, which is answered all the same. */
    static native void cancel(int ticket);

    /**
     * Waits for answers and moves whole records into {@code target}, which must have room for the largest.
     *
     * @return their length in bytes; 0 after a nudge, or when {@code timeoutMs} (if above 0) have passed
     */
    static native int collect(byte[] target, int timeoutMs);

    /**
     * Moves whole records that are there, or come within {@code patienceUs}, into {@code target}, which must have room for the largest, for a
     * thread that comes back for more or says {@link #left}: until then nobody else is woken for them.
     *
     * @return their length in bytes
     */
    static native int collectNow(byte[] target, int patienceUs);

    /** The thread that has called {@link #collectNow} does not come back. */
    static native void left();

    /**
     * Waits for the answer to one operation, at most {@code timeoutMs}.
     *
     * @return its record; {@code null} if it goes, or has gone, to the thread that collects
     */
    static native byte[] await(int ticket, int timeoutMs);

    /** Makes the thread that awaits this answer look for it elsewhere. */
    static native void release(int ticket);

    /** Makes the thread that collects come back. */
    static native void nudge();

    /**
     * A byte string that was kept; {@code null} if it is not {@code wanted}.
     *
     * @throws OutOfMemoryError if there is no room for it; it is gone then
     */
    static native byte[] take(int number, boolean wanted);

    /** Answers a question for the part of a payload from {@code start} to {@code end}; without a payload, it is gone. */
    static native void segment(int question, byte[] payload, int start, int end);

    /** What a store has counted, or an error. */
    static native byte[] stats(int store);

    /** Forgets a store that nobody can use any more. */
    static native void forget(int store);

    /** Log events of at least this level come from now on. */
    static native void log(byte[] level);
}
