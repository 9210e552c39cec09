package systems.zlink.framework.locations.embedded;

import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkLocationStore;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.framework.locationprovider.ZLinkStoreKey;
import systems.zlink.framework.locationprovider.ZLinkStoreReadResult;
import systems.zlink.framework.locationprovider.ZLinkStoreScanRequest;
import systems.zlink.framework.locationprovider.ZLinkStoreScanResult;
import systems.zlink.framework.locationprovider.ZLinkStoreWriteRequest;
import systems.zlink.framework.locationprovider.ZLinkStoreWriteResult;
import systems.zlink.store.internal.NativeLocationStore;

/**
 * A Location Store in memory, or in a folder on disk. Safe for use by several threads.
 *
 * <p>In memory, small operations are done when the call returns. Other stages are completed on
 * {@link java.util.concurrent.ForkJoinPool#commonPool()}, unless another executor was chosen ({@code ZLinkStores.setCompletionExecutor}); a
 * continuation may block. A thread in {@code join} or {@code get} is woken directly.
 *
 * <p>A stage that fails does so with {@link java.util.concurrent.CancellationException}, with
 * {@link java.util.concurrent.TimeoutException}, or with {@link systems.zlink.store.ZLinkStoreException}, which tells a code and the
 * outcome.
 */
public final class ZLinkEmbeddedLocationStore implements ZLinkLocationStore, AutoCloseable {
    private final NativeLocationStore behind;

    /**
     * Makes a store. A folder is opened at once.
     *
     * @param options where the data is
     * @throws IllegalArgumentException if an option is wrong
     * @throws NullPointerException if the options or the operation timeout are {@code null}
     * @throws systems.zlink.store.ZLinkStoreException {@code UNAVAILABLE} if another process has the folder, {@code INCOMPATIBLE} if it holds
     *     something else
     * @throws UnsatisfiedLinkError if the native library can not be loaded; the message says what to do
     */
    public ZLinkEmbeddedLocationStore(ZLinkEmbeddedLocationOptions options) {
        if (options == null) {
            throw new NullPointerException("options must not be null");
        }
        behind = new NativeLocationStore(this, options.place());
    }

    @Override
    public CompletionStage<ZLinkStoreReadResult> read(ZLinkStoreKey key, ZLinkStoreCancellation cancellation) {
        return behind.read(key, cancellation);
    }

    @Override
    public CompletionStage<ZLinkStoreWriteResult> write(ZLinkStoreWriteRequest request, ZLinkStoreCancellation cancellation) {
        return behind.write(request, cancellation);
    }

    @Override
    public CompletionStage<ZLinkStoreScanResult> scan(ZLinkStoreScanRequest request, ZLinkStoreCancellation cancellation) {
        return behind.scan(request, cancellation);
    }

    /**
     * Fails new operations, waits for those under way (at most the operation timeout), and gives up what the store holds. Closing again does
     * nothing more.
     */
    @Override
    public void close() {
        behind.close();
    }
}
