package systems.zlink.framework.locations.redis;

import java.time.Duration;
import systems.zlink.store.internal.Place;

/** How {@link ZLinkRedisLocationStore} reaches Redis. The store copies what it needs when it is made. */
public final class ZLinkRedisLocationOptions {
    private String connectionString;
    private String keyPrefix;
    private Duration operationTimeout = Place.DEFAULT_OPERATION_TIMEOUT;

    /** Options with their defaults. */
    public ZLinkRedisLocationOptions() {}

    /**
     * The connection string.
     *
     * @return a URL such as {@code redis://user:password@host:6379/0}, or {@code host:port}; {@code null} until it is set
     */
    public String connectionString() {
        return connectionString;
    }

    /**
     * Sets the connection string; needed.
     *
     * <p>{@code redis://}, {@code rediss://} (TLS), {@code valkey://}, {@code valkeys://} and {@code redis+unix:///path.sock} URLs, with user
     * and password percent-encoded; {@code host:port} alone means {@code redis://}. Stores with the same connection string share their
     * connections.
     *
     * @param value the connection string
     * @return these options
     */
    public ZLinkRedisLocationOptions setConnectionString(String value) {
        connectionString = value;
        return this;
    }

    /**
     * The store's name space.
     *
     * @return the key prefix; {@code null} until it is set
     */
    public String keyPrefix() {
        return keyPrefix;
    }

    /**
     * Sets the store's name space; needed.
     *
     * @param value 1 to 256 bytes of UTF-8 without braces
     * @return these options
     */
    public ZLinkRedisLocationOptions setKeyPrefix(String value) {
        keyPrefix = value;
        return this;
    }

    /**
     * How long an operation may take in all: queueing, connecting, retries and the answer.
     *
     * @return the operation timeout; 5 seconds by default
     */
    public Duration operationTimeout() {
        return operationTimeout;
    }

    /**
     * Sets how long an operation may take in all.
     *
     * @param value 1 to 2<sup>31</sup>-1 milliseconds, parts of a millisecond rounded up
     * @return these options
     */
    public ZLinkRedisLocationOptions setOperationTimeout(Duration value) {
        operationTimeout = value;
        return this;
    }

    Place place() {
        return Place.redis(connectionString, keyPrefix, operationTimeout);
    }
}
