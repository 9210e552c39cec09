package systems.zlink.store.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import systems.zlink.framework.locations.embedded.ZLinkEmbeddedLocationOptions;
import systems.zlink.framework.locations.embedded.ZLinkEmbeddedLocationStore;
import systems.zlink.framework.locations.embedded.ZLinkEmbeddedRelocationOptions;
import systems.zlink.framework.locations.embedded.ZLinkEmbeddedRelocationStore;
import systems.zlink.framework.locations.redis.ZLinkRedisLocationOptions;
import systems.zlink.framework.locations.redis.ZLinkRedisLocationStore;
import systems.zlink.framework.locations.redis.ZLinkRedisRelocationOptions;
import systems.zlink.framework.locations.redis.ZLinkRedisRelocationStore;
import systems.zlink.store.internal.InMemory;
import systems.zlink.framework.locationprovider.ZLinkLocationStore;
import systems.zlink.framework.locationprovider.ZLinkRelocationStore;

/** The engines that every scenario runs against. */
public enum Engine {
    MEMORY(Set.of()),
    FILE(Set.of("survives-reopen")),
    REDIS(Set.of("survives-reopen", "needs-key-prefix"), "single"),
    SENTINEL(Set.of("survives-reopen", "needs-key-prefix"), "sentinel", "--tls", "--password", "of-all"),
    CLUSTER(Set.of("survives-reopen", "needs-key-prefix"), "cluster", "--tls", "--password", "of-all");

    private static final AtomicInteger PLACES = new AtomicInteger();

    /** What the engine can do, or needs, beyond the others. */
    private final Set<String> capabilities;
    /** What the starter of test servers is told; nothing if there is none to start. */
    private final List<String> servers;

    Engine(Set<String> capabilities, String... servers) {
        this.capabilities = capabilities;
        this.servers = List.of(servers);
    }

    /** The engines of this run: those that {@code -Dzlink.engines=sentinel,cluster} names, else those of one server at most. */
    public static List<Engine> chosen() {
        String names = System.getProperty("zlink.engines", "memory,file,redis");
        return Stream.of(names.split(",")).map(name -> valueOf(name.toUpperCase(Locale.ROOT))).toList();
    }

    /** What its places need, or null. */
    public TestServer start() {
        return servers.isEmpty() ? null : TestServer.start(servers);
    }

    public Set<String> capabilities() {
        return capabilities;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** A spot that no other test uses: stores opened there with equal prefixes see the same data. */
    public Place newPlace(TestServer servers) {
        String unique = ProcessHandle.current().pid() + "-" + PLACES.incrementAndGet();
        return switch (this) {
            case MEMORY -> new Place(this, unique, null, "");
            case FILE -> new Place(this, null, temporaryFolder(), "");
            case REDIS, SENTINEL, CLUSTER -> new Place(this, servers.url(), null, unique + ".");
        };
    }

    private static Path temporaryFolder() {
        try {
            return Files.createTempDirectory("zlink-store-test-");
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /**
     * One spot.
     *
     * @param inFront what is put in front of key prefixes
     */
    public record Place(Engine engine, String address, Path folder, String inFront) implements AutoCloseable {
        public ZLinkLocationStore location(String keyPrefix, Duration timeout) {
            return switch (engine) {
                case MEMORY -> InMemory.location(address, keyPrefix, timeout);
                case FILE -> new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions()
                        .setPath(folder).setKeyPrefix(keyPrefix).setOperationTimeout(timeout));
                case REDIS, SENTINEL, CLUSTER -> new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                        .setConnectionString(address).setKeyPrefix(keyPrefix).setOperationTimeout(timeout));
            };
        }

        public ZLinkRelocationStore relocation(String keyPrefix, Duration timeout) {
            return switch (engine) {
                case MEMORY -> InMemory.relocation(address, keyPrefix, timeout);
                case FILE -> new ZLinkEmbeddedRelocationStore(new ZLinkEmbeddedRelocationOptions()
                        .setPath(folder).setKeyPrefix(keyPrefix).setOperationTimeout(timeout));
                case REDIS, SENTINEL, CLUSTER -> new ZLinkRedisRelocationStore(new ZLinkRedisRelocationOptions()
                        .setConnectionString(address).setKeyPrefix(keyPrefix).setOperationTimeout(timeout));
            };
        }

        /** Where a project of this place is opened. */
        public String projectUrl() {
            return switch (engine) {
                case MEMORY -> "memory:" + address;
                case FILE -> folder.toUri().toString();
                case REDIS, SENTINEL, CLUSTER -> address;
            };
        }

        @Override
        public void close() {
            if (folder == null) {
                return;
            }
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
