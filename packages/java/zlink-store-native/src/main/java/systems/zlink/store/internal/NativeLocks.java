package systems.zlink.store.internal;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/** The locks of a project for one invocation. */
public final class NativeLocks extends Numbered {
    NativeLocks(byte[] opened) {
        super(numberOf(opened), forget(numberOf(opened)));
    }

    private static Runnable forget(int number) {
        return () -> Native.forget(number);
    }

    /**
     * Acquires a lock.
     *
     * @param <T> the result
     * @param key its key
     * @param namespace its namespace, or {@code null} for the default
     * @param waitTime how long to wait, or {@code null} for the default
     * @param leaseTime how long the lease lasts, or {@code null} for the default
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of a {@link NativeLease} or {@link Nothing#ABSENT}
     * @return the result
     */
    public <T> CompletionStage<T> acquire(
            String key,
            String namespace,
            Duration waitTime,
            Duration leaseTime,
            ZLinkStoreCancellation cancellation,
            Finish<T> finish) {
        Packer request = new Packer(64 + 3 * Arguments.given("key", key).length());
        request.flag(namespace == null ? Wire.LEFT_OUT : Wire.THERE);
        if (namespace != null) {
            request.text(namespace);
        }
        request.text(key).optional(NativeLease.millis(waitTime)).optional(NativeLease.millis(leaseTime));
        return submit(new Call<>(Wire.ASK_LOCK_ACQUIRE, finish), request, cancellation);
    }

    /**
     * Looks a lease up.
     *
     * @param <T> the result
     * @param id its id
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of a {@link NativeLease} or {@link Nothing#ABSENT}
     * @return the result
     */
    public <T> CompletionStage<T> attach(String id, ZLinkStoreCancellation cancellation, Finish<T> finish) {
        Packer request = new Packer(4 + 3 * Arguments.given("id", id).length()).text(id);
        return submit(new Call<>(Wire.ASK_LOCK_ATTACH, finish), request, cancellation);
    }
}
