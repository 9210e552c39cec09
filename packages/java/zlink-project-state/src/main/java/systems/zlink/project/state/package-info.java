/**
 * Durable JSON state with compare-and-set, and distributed locks with fencing tokens, for one project: {@link
 * systems.zlink.project.state.Project} is the entrance.
 *
 * <p>Whoever calls with a wrong argument is told so by the call itself ({@link systems.zlink.project.state.ValidationException}, or {@link
 * java.lang.NullPointerException} for one that must not be {@code null}). Everything else ends the stage: {@link
 * systems.zlink.project.state.StateConflictException}, {@link systems.zlink.project.state.RateLimitException}, {@link
 * systems.zlink.project.state.LockLostException} and {@link systems.zlink.project.state.LockUnavailableException} by the rules, {@link
 * java.util.concurrent.CancellationException} for what the caller ended, {@link systems.zlink.store.ZLinkStoreTimeoutException} and {@link
 * systems.zlink.store.ZLinkStoreException} for what failed. Other languages call the same exceptions errors ({@code StateConflictError}
 * …).
 *
 * <p>On an engine in memory an operation is done when the call returns, unless it waits for a lock. Other stages are completed on {@link
 * java.util.concurrent.ForkJoinPool#commonPool()}, unless another executor was chosen ({@link
 * systems.zlink.store.ZLinkStores#setCompletionExecutor}); a continuation may block. A thread in {@code join} or {@code get} is woken
 * directly.
 *
 * <p>Every method takes a {@link systems.zlink.framework.locationprovider.ZLinkStoreCancellation} behind its own parameters, or {@code null}
 * for none; cancelling the stage's future ends an operation, too.
 */
package systems.zlink.project.state;
