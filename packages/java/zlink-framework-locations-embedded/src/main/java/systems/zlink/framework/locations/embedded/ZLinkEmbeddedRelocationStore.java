package systems.zlink.framework.locations.embedded;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkBlobPutResult;
import systems.zlink.framework.locationprovider.ZLinkBlobReadResult;
import systems.zlink.framework.locationprovider.ZLinkBlobReference;
import systems.zlink.framework.locationprovider.ZLinkBlobRenewResult;
import systems.zlink.framework.locationprovider.ZLinkRelocationStore;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.store.internal.NativeRelocationStore;

/**
 * A Relocation Store in memory, or in a folder on disk. Safe for use by several threads.
 *
 * <p>In memory, small operations are done when the call returns. Other stages are completed on
 * {@link java.util.concurrent.ForkJoinPool#commonPool()}, unless another executor was chosen ({@code ZLinkStores.setCompletionExecutor}); a
 * continuation may block. A thread in {@code join} or {@code get} is woken directly.
 *
 * <p>A stage that fails does so with {@link java.util.concurrent.CancellationException}, with
 * {@link java.util.concurrent.TimeoutException}, or with {@link systems.zlink.store.ZLinkStoreException}, which tells a code and the
 * outcome.
 */
public final class ZLinkEmbeddedRelocationStore implements ZLinkRelocationStore, AutoCloseable {
    private final NativeRelocationStore behind;

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
    public ZLinkEmbeddedRelocationStore(ZLinkEmbeddedRelocationOptions options) {
        if (options == null) {
            throw new NullPointerException("options must not be null");
        }
        behind = new NativeRelocationStore(this, options.place());
    }

    @Override
    public CompletionStage<ZLinkBlobPutResult> put(
            ZLinkBlobReference reference, byte[] payload, Duration retention, ZLinkStoreCancellation cancellation) {
        return behind.put(reference, payload, retention, cancellation);
    }

    @Override
    public CompletionStage<ZLinkBlobReadResult> read(ZLinkBlobReference reference, ZLinkStoreCancellation cancellation) {
        return behind.read(reference, cancellation);
    }

    @Override
    public CompletionStage<ZLinkBlobRenewResult> renew(
            ZLinkBlobReference reference, Duration retention, ZLinkStoreCancellation cancellation) {
        return behind.renew(reference, retention, cancellation);
    }

    @Override
    public CompletionStage<Void> delete(ZLinkBlobReference reference, ZLinkStoreCancellation cancellation) {
        return behind.delete(reference, cancellation);
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
