package systems.zlink.store.internal;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/** A lease. */
public final class NativeLease extends Numbered {
    private final long fencingToken;
    private final String id;
    private final String namespace;
    private final String key;
    private volatile Instant expiresAt;

    /** {@code fields} are those of the answer that brought it. */
    NativeLease(int number, Unpacker fields) {
        super(number, () -> Native.forget(number));
        fencingToken = (long) fields.number();
        expiresAt = fields.time();
        id = fields.text();
        namespace = fields.text();
        key = fields.text();
    }

    /** Releases and forgets the lease of this number, whose caller is gone. */
    static void giveBack(int number) {
        try {
            Collector.submit(new Call<>(Wire.ASK_LOCK_RELEASE), number, new Packer(0), null);
        } catch (RuntimeException | Error failure) {
            // It expires.
            Logs.failed("releasing a lease that nobody waits for", failure);
        }
        Native.forget(number);
    }

    /** What is said of a duration that may be left out. */
    static Long millis(Duration duration) {
        return duration == null ? null : Durations.millis(duration);
    }

    /**
     * Its fencing token.
     *
     * @return the token
     */
    public long fencingToken() {
        return fencingToken;
    }

    /**
     * What it is known by.
     *
     * @return the id
     */
    public String id() {
        return id;
    }

    /**
     * The lock's namespace.
     *
     * @return the name
     */
    public String namespace() {
        return namespace;
    }

    /**
     * The lock's key.
     *
     * @return the key
     */
    public String key() {
        return key;
    }

    /**
     * When it expires, as last renewed through this object.
     *
     * @return the instant
     */
    public Instant expiresAt() {
        return expiresAt;
    }

    /**
     * Moves the expiry.
     *
     * @param leaseTime from now on, or {@code null} for as long as it was acquired for
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of an {@link Instant} or {@link Nothing#LOST}
     * @return the result
     */
    public CompletionStage<Void> renew(Duration leaseTime, ZLinkStoreCancellation cancellation, Finish<Void> finish) {
        Finish<Void> moving = answer -> {
            if (answer instanceof Instant then) {
                expiresAt = then;
            }
            return finish.of(answer);
        };
        return submit(new Call<>(Wire.ASK_LOCK_RENEW, moving), new Packer(16).optional(millis(leaseTime)), cancellation);
    }

    /**
     * Frees the lock.
     *
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of {@code null} (it is done) or {@link Nothing#LOST}
     * @return the result
     */
    public CompletionStage<Void> release(ZLinkStoreCancellation cancellation, Finish<Void> finish) {
        return submit(new Call<>(Wire.ASK_LOCK_RELEASE, finish), new Packer(0), cancellation);
    }
}
