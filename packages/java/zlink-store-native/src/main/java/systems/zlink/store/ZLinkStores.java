package systems.zlink.store;

import java.time.Instant;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import systems.zlink.framework.locationprovider.ZLinkLocationStore;
import systems.zlink.framework.locationprovider.ZLinkRelocationStore;
import systems.zlink.store.internal.Completions;
import systems.zlink.store.internal.NativeStore;

/**
 * Health and counters of the official stores, and which threads complete their stages.
 *
 * <p>Log events of the native library go to the {@link System.Logger} {@code systems.zlink.store}, at the levels that it asks for when the
 * first store is made.
 */
public final class ZLinkStores {
    private ZLinkStores() {}

    /**
     * Asks a store's engine for its clock, which shows that it answers.
     *
     * @param store an official store
     * @return the engine's clock; ends as other operations do
     * @throws IllegalArgumentException if the store is not an official one
     */
    public static CompletionStage<Instant> ping(ZLinkLocationStore store) {
        return NativeStore.behind(store).ping();
    }

    /**
     * Asks a store's engine for its clock, which shows that it answers.
     *
     * @param store an official store
     * @return the engine's clock; ends as other operations do
     * @throws IllegalArgumentException if the store is not an official one
     */
    public static CompletionStage<Instant> ping(ZLinkRelocationStore store) {
        return NativeStore.behind(store).ping();
    }

    /**
     * What a store has counted so far.
     *
     * @param store an official store
     * @return a snapshot
     * @throws IllegalArgumentException if the store is not an official one
     * @throws ZLinkStoreException {@code CLOSED} if the store is closed
     */
    public static ZLinkStoreStats stats(ZLinkLocationStore store) {
        return NativeStore.behind(store).stats();
    }

    /**
     * What a store has counted so far.
     *
     * @param store an official store
     * @return a snapshot
     * @throws IllegalArgumentException if the store is not an official one
     * @throws ZLinkStoreException {@code CLOSED} if the store is closed
     */
    public static ZLinkStoreStats stats(ZLinkRelocationStore store) {
        return NativeStore.behind(store).stats();
    }

    /**
     * Sets what runs the continuations of stages, for all official stores of this class loader.
     *
     * <p>Without one they run on {@link java.util.concurrent.ForkJoinPool#commonPool()}, and on threads of our own while that is blocked.
     * An executor that is set is trusted: if its threads are all blocked, continuations wait. A thread that waits for a stage with
     * {@code join} or {@code get} never needs it. If the executor refuses a task, the default takes it.
     *
     * @param executor the executor, for instance one thread per task or virtual threads; {@code null} for the default
     */
    public static void setCompletionExecutor(Executor executor) {
        Completions.setExecutor(executor);
    }
}
