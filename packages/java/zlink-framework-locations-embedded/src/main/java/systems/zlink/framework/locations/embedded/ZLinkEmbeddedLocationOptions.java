package systems.zlink.framework.locations.embedded;

import java.nio.file.Path;
import java.time.Duration;
import systems.zlink.store.internal.Place;

/** How {@link ZLinkEmbeddedLocationStore} keeps its data. The store copies what it needs when it is made. */
public final class ZLinkEmbeddedLocationOptions {
    private Path path;
    private String keyPrefix;
    private Duration operationTimeout = Place.DEFAULT_OPERATION_TIMEOUT;

    /** Options with their defaults. */
    public ZLinkEmbeddedLocationOptions() {}

    /**
     * The folder that keeps the data.
     *
     * @return the folder; {@code null} (the default): the data lives in memory, and only as long as the store
     */
    public Path path() {
        return path;
    }

    /**
     * Sets the folder that keeps the data. It is made if it is missing. Stores of one process can share it; a second process can not.
     *
     * @param value the folder; {@code null}: in memory of the store
     * @return these options
     */
    public ZLinkEmbeddedLocationOptions setPath(Path value) {
        path = value;
        return this;
    }

    /**
     * The store's name space.
     *
     * @return the key prefix; {@code null} (the default) for none
     */
    public String keyPrefix() {
        return keyPrefix;
    }

    /**
     * Sets the store's name space; optional.
     *
     * @param value 0 to 256 bytes of UTF-8 without braces
     * @return these options
     */
    public ZLinkEmbeddedLocationOptions setKeyPrefix(String value) {
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
    public ZLinkEmbeddedLocationOptions setOperationTimeout(Duration value) {
        operationTimeout = value;
        return this;
    }

    Place place() {
        return Place.embedded(path, keyPrefix, operationTimeout);
    }
}
