package systems.zlink.project.state;

import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/**
 * The locks of a project, for one invocation: at most 16 leases at a time, pending acquires counted; the 17th is a {@link
 * ValidationException}. A key is 1 to 255 of {@code A-Z a-z 0-9 . _ : / -}, beginning with a letter or digit.
 *
 * <p>A lock makes no transaction, and exactly-once of nothing: it says who is to work now.
 */
public interface DistributedLocks {
    /**
     * Takes a lock. Whoever waits is served in order. A call that is cancelled, or whose future was cancelled or timed out, leaves no lease
     * behind.
     *
     * @param key the lock's key
     * @param options {@code null} for the defaults
     * @param cancellation ends the operation, or {@code null}
     * @return the lease, unless the lock could not be had within the wait time
     * @throws ValidationException if the key or an option is wrong, or 16 leases are held
     */
    CompletionStage<Optional<LockLease>> acquire(String key, LockOptions options, ZLinkStoreCancellation cancellation);

    /**
     * {@link #acquire(String, LockOptions, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param key the lock's key
     * @param options {@code null} for the defaults
     * @return the lease, unless the lock could not be had within the wait time
     * @throws ValidationException if the key or an option is wrong, or 16 leases are held
     */
    default CompletionStage<Optional<LockLease>> acquire(String key, LockOptions options) {
        return acquire(key, options, null);
    }

    /**
     * {@link #acquire(String, LockOptions, ZLinkStoreCancellation)} with the defaults.
     *
     * @param key the lock's key
     * @return the lease, unless the lock is held, or somebody waits for it
     * @throws ValidationException if the key is wrong, or 16 leases are held
     */
    default CompletionStage<Optional<LockLease>> acquire(String key) {
        return acquire(key, null, null);
    }

    /**
     * Takes a lock, does the work, and releases. Nothing is renewed by itself: work that may last up to the lease's end calls {@link
     * LockLease#renew()}.
     *
     * <p>The work runs on the thread that completes the acquire, which is the caller's own if the lock is had at once. The stage fails with
     * {@link LockUnavailableException} if the lock could not be had in time, and the work is not begun. If the work fails, the lease is
     * released, and the stage fails with the work's own exception, whatever becomes of the release. If the work is done and the release
     * fails, for instance because the lease has expired meanwhile ({@link LockLostException}), that takes the place of the result.
     *
     * <p>The cancellation, or cancelling the future, ends the wait for the lock. Work that has begun goes on, and the release follows it.
     *
     * @param <T> the result
     * @param key the lock's key
     * @param options {@code null} for the defaults
     * @param work what is to be done while the lock is held
     * @param cancellation ends the wait for the lock, or {@code null}
     * @return the work's result
     * @throws ValidationException if the key or an option is wrong, or 16 leases are held
     */
    <T> CompletionStage<T> withLock(
            String key,
            LockOptions options,
            Function<? super LockLease, ? extends CompletionStage<T>> work,
            ZLinkStoreCancellation cancellation);

    /**
     * {@link #withLock(String, LockOptions, Function, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param <T> the result
     * @param key the lock's key
     * @param options {@code null} for the defaults
     * @param work what is to be done while the lock is held
     * @return the work's result
     * @throws ValidationException if the key or an option is wrong, or 16 leases are held
     */
    default <T> CompletionStage<T> withLock(
            String key, LockOptions options, Function<? super LockLease, ? extends CompletionStage<T>> work) {
        return withLock(key, options, work, null);
    }

    /**
     * {@link #withLock(String, LockOptions, Function, ZLinkStoreCancellation)} with the defaults.
     *
     * @param <T> the result
     * @param key the lock's key
     * @param work what is to be done while the lock is held
     * @return the work's result
     * @throws ValidationException if the key is wrong, or 16 leases are held
     */
    default <T> CompletionStage<T> withLock(String key, Function<? super LockLease, ? extends CompletionStage<T>> work) {
        return withLock(key, null, work, null);
    }

    /**
     * The live lease of an id, whoever acquired it in this project. It counts for nobody's 16. The stage fails with {@link LockLostException}
     * if there is none.
     *
     * @param id the lease's id
     * @param cancellation ends the operation, or {@code null}
     * @return the lease
     */
    CompletionStage<LockLease> attach(String id, ZLinkStoreCancellation cancellation);

    /**
     * {@link #attach(String, ZLinkStoreCancellation)} without a cancellation.
     *
     * @param id the lease's id
     * @return the lease
     */
    default CompletionStage<LockLease> attach(String id) {
        return attach(id, null);
    }
}
