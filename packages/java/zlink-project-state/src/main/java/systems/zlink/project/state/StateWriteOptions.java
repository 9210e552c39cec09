package systems.zlink.project.state;

import java.time.Duration;

/**
 * How an entry is written. Limits are checked by the call.
 *
 * @param expectedVersion 0: only if there is no entry; n &gt; 0: only if the live entry has version n; {@code null}: in any case
 * @param ttl how long it lives from this write on, 1 to 31,536,000 s, parts of a second rounded up; {@code null}: it does not expire, also
 *     when it had an expiry before
 */
public record StateWriteOptions(Long expectedVersion, Duration ttl) {
    /**
     * In any case, and for ever.
     *
     * @return the defaults
     */
    public static StateWriteOptions defaults() {
        return new StateWriteOptions(null, null);
    }

    /**
     * The same with an expected version.
     *
     * @param version 0: only if there is no entry; n &gt; 0: only if the live entry has version n
     * @return the options
     */
    public StateWriteOptions withExpectedVersion(long version) {
        return new StateWriteOptions(version, ttl);
    }

    /**
     * The same with an expiry.
     *
     * @param value how long the entry lives
     * @return the options
     */
    public StateWriteOptions withTtl(Duration value) {
        return new StateWriteOptions(expectedVersion, value);
    }
}
