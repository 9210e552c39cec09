package systems.zlink.project.state;

import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/**
 * A lease: the lock is its holder's until it is released or expires. An object that is merely dropped releases nothing: the lock is free when
 * the lease expires.
 *
 * <p>Only one lease of a lock is valid at a time, but a holder may be late: have what the lock guards refuse a {@link #fencingToken} smaller
 * than one it has seen.
 */
public interface LockLease {
    /**
     * Whoever knows it can renew and release the lease, from any process of the project: keep it to yourself.
     *
     * @return the id
     */
    String id();

    /**
     * The lock's key.
     *
     * @return the key
     */
    String key();

    /**
     * The lock's namespace.
     *
     * @return the name
     */
    String namespace();

    /**
     * Larger than that of every earlier lease of this lock, for ever; at most 2<sup>53</sup>-1.
     *
     * @return the token
     */
    long fencingToken();

    /**
     * When it expires by the engine's clock, as last renewed through this object.
     *
     * @return the instant
     */
    Instant expiresAt();

    /**
     * From the engine's now on the lease lasts so long. The stage fails with {@link LockLostException} if it was lost or has expired.
     *
     * @param leaseTime 5,000 to 60,000 ms; {@code null}: as long as it was acquired for
     * @param cancellation ends the operation, or {@code null}
     * @return done
     * @throws ValidationException if the time is wrong
     */
    CompletionStage<Void> renew(Duration leaseTime, ZLinkStoreCancellation cancellation);

    /**
     * {@link #renew(Duration, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param leaseTime 5,000 to 60,000 ms; {@code null}: as long as it was acquired for
     * @return done
     * @throws ValidationException if the time is wrong
     */
    default CompletionStage<Void> renew(Duration leaseTime) {
        return renew(leaseTime, null);
    }

    /**
     * {@link #renew(Duration, ZLinkStoreCancellation)} for as long as it was acquired for.
     *
     * @return done
     */
    default CompletionStage<Void> renew() {
        return renew(null, null);
    }

    /**
     * Frees the lock; again through this object after a success, it does nothing. The stage fails with {@link LockLostException} if the lease
     * was lost or has expired before.
     *
     * @param cancellation ends the operation, or {@code null}
     * @return done
     */
    CompletionStage<Void> release(ZLinkStoreCancellation cancellation);

    /**
     * {@link #release(ZLinkStoreCancellation)} without a cancellation.
     *
     * @return done
     */
    default CompletionStage<Void> release() {
        return release(null);
    }
}
