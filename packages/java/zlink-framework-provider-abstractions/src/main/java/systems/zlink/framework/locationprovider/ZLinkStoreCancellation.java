package systems.zlink.framework.locationprovider;

/**
 * Tells whether the caller still wants an operation. It is asked before the operation starts and again while it waits, from other
 * threads, several times a second: it must be safe for use by several threads, and should answer at once.
 *
 * <p>Requested before the call: nothing is started. Requested later: the stage ends soon, within 100 milliseconds, and the operation may
 * or may not have happened.
 */
@FunctionalInterface
public interface ZLinkStoreCancellation {
    /**
     * Whether the operation is no longer wanted. Once {@code true}, it should stay so.
     *
     * @return {@code true} to cancel
     */
    boolean isCancellationRequested();
}
