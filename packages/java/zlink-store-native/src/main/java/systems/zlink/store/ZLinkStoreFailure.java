package systems.zlink.store;

/** What every failure of an official store tells, whichever exception carries it. */
public interface ZLinkStoreFailure {
    /**
     * What kind of failure, as a stable text: {@code TIMEOUT}, {@code UNAVAILABLE}, {@code UNAUTHENTICATED}, {@code OUT_OF_MEMORY},
     * {@code INCOMPATIBLE}, {@code CLOSED} or {@code INTERNAL}.
     *
     * @return the code
     */
    String code();

    /**
     * What became of the operation: {@code notApplied} only if it surely changed nothing and never will, else {@code unknown}: read the
     * key (or the reference), and compare.
     *
     * @return {@code notApplied} or {@code unknown}
     */
    String outcome();

    /**
     * Whether the same call may succeed later without anybody mending anything. A write whose outcome is unknown is to be looked at before
     * it is made again.
     *
     * @return whether trying again makes sense
     */
    boolean retryable();
}
