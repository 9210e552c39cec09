package systems.zlink.framework.locations.redis;

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
 * A Relocation Store on Redis or Valkey. Safe for use by several threads.
 *
 * <p>Stages are completed on {@link java.util.concurrent.ForkJoinPool#commonPool()}, unless another executor was chosen
 * ({@code ZLinkStores.setCompletionExecutor}); a continuation may block. A thread in {@code join} or {@code get} is woken directly.
 *
 * <p>A stage that fails does so with {@link java.util.concurrent.CancellationException}, with
 * {@link java.util.concurrent.TimeoutException}, or with {@link systems.zlink.store.ZLinkStoreException}, which tells a code and the
 * outcome.
 */
public final class ZLinkRedisRelocationStore implements ZLinkRelocationStore, AutoCloseable {
    private final NativeRelocationStore behind;

    /**
     * Makes a store, without I/O: the first operation connects.
     *
     * @param options how Redis is reached
     * @throws IllegalArgumentException if the connection string or the key prefix is missing, or an option is wrong
     * @throws NullPointerException if the options or the operation timeout are {@code null}
     * @throws UnsatisfiedLinkError if the native library can not be loaded; the message says what to do
     */
    public ZLinkRedisRelocationStore(ZLinkRedisRelocationOptions options) {
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
