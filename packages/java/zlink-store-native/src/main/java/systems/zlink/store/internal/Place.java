package systems.zlink.store.internal;

import java.nio.file.Path;
import java.time.Duration;

/**
 * Where a store keeps its data, and how it is opened.
 *
 * @param kind of {@link Native}
 * @param address a folder or a connection string
 * @param keyPrefix the store's name space
 * @param operationTimeout the operation timeout
 */
public record Place(int kind, String address, String keyPrefix, Duration operationTimeout) {
    /** The default operation timeout. */
    public static final Duration DEFAULT_OPERATION_TIMEOUT = Duration.ofSeconds(5);

    /**
     * In memory of the store, or in a folder.
     *
     * @param path the folder; {@code null}: in memory
     * @param keyPrefix the name space; {@code null}: none
     * @param operationTimeout the operation timeout
     * @return the place
     */
    public static Place embedded(Path path, String keyPrefix, Duration operationTimeout) {
        String prefix = keyPrefix == null ? "" : keyPrefix;
        return path == null
                ? new Place(Native.MEMORY, "", prefix, operationTimeout)
                : new Place(Native.FILE, path.toAbsolutePath().toString(), prefix, operationTimeout);
    }

    /**
     * On Redis.
     *
     * @param connectionString a URL, or {@code host:port}
     * @param keyPrefix the name space
     * @param operationTimeout the operation timeout
     * @return the place
     */
    public static Place redis(String connectionString, String keyPrefix, Duration operationTimeout) {
        return new Place(Native.REDIS, given("connectionString", connectionString), given("keyPrefix", keyPrefix), operationTimeout);
    }

    /** Checks that there is an operation timeout; native code checks the rest. */
    public Place {
        Arguments.given("operationTimeout", operationTimeout);
    }

    private static String given(String name, String value) {
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException(name + " must be set");
        }
        return value;
    }
}
