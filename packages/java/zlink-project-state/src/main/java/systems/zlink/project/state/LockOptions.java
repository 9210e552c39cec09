package systems.zlink.project.state;

import java.time.Duration;

/**
 * How a lock is acquired. Parts of a millisecond are rounded up; limits are checked by the call, which calls the times {@code waitMs} and
 * {@code leaseMs}.
 *
 * @param namespace the lock's namespace; {@code null}: {@code default}
 * @param waitTime how long to wait for it, 0 to 10,000 ms; {@code null}: 0, it is taken only if it is free and nobody waits
 * @param leaseTime how long the lease lasts, 5,000 to 60,000 ms; {@code null}: 30,000 ms
 */
public record LockOptions(String namespace, Duration waitTime, Duration leaseTime) {
    /**
     * Without a wait, for 30 s, in the default namespace.
     *
     * @return the defaults
     */
    public static LockOptions defaults() {
        return new LockOptions(null, null, null);
    }

    /**
     * The same in another namespace.
     *
     * @param value the namespace
     * @return the options
     */
    public LockOptions withNamespace(String value) {
        return new LockOptions(value, waitTime, leaseTime);
    }

    /**
     * The same with another wait.
     *
     * @param value how long to wait for the lock
     * @return the options
     */
    public LockOptions withWaitTime(Duration value) {
        return new LockOptions(namespace, value, leaseTime);
    }

    /**
     * The same with another length of the lease.
     *
     * @param value how long the lease lasts
     * @return the options
     */
    public LockOptions withLeaseTime(Duration value) {
        return new LockOptions(namespace, waitTime, value);
    }
}
