package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static systems.zlink.store.tests.support.Stores.await;
import static systems.zlink.store.tests.support.Stores.end;
import static systems.zlink.store.tests.support.Stores.key;
import static systems.zlink.store.tests.support.Stores.put;
import static systems.zlink.store.tests.support.Stores.reference;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.store.ZLinkStoreException;
import systems.zlink.store.ZLinkStores;
import systems.zlink.store.tests.support.Stores;
import systems.zlink.store.tests.support.TestServer;

/** Wrong calls throw, name the argument, start nothing, and leave the store at work. */
class ArgumentsTest {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    @Test
    void whatIsMissingIsNamed() {
        try (var store = Stores.inMemory(); var blobs = Stores.blobsInMemory()) {
            isMissing("key ", () -> store.read(null, null));
            isMissing("key.value ", () -> store.read(key(null), null));
            isMissing("request ", () -> store.write(null, null));
            isMissing("request ", () -> store.scan(null, null));
            isMissing("prefix ", () -> store.scan(new ZLinkStoreScanRequest(null, null, 1), null));
            isMissing("cursor.value ", () -> store.scan(new ZLinkStoreScanRequest("", new ZLinkStoreScanCursor(null), 1), null));
            isMissing("conditions[1] ", () -> store.write(new ZLinkStoreWriteRequest(
                    Arrays.asList(new ZLinkStoreMissingCondition(key("a")), null), List.of()), null));
            isMissing("conditions[0].key ", () -> store.write(new ZLinkStoreWriteRequest(
                    List.of(new ZLinkStoreMissingCondition(null)), List.of()), null));
            isMissing("conditions[0].expected ", () -> store.write(new ZLinkStoreWriteRequest(
                    List.of(new ZLinkStoreVersionCondition(key("a"), null)), List.of()), null));
            isMissing("mutations[0] ", () -> store.write(new ZLinkStoreWriteRequest(List.of(), Arrays.asList((ZLinkStoreMutation) null)), null));
            isMissing("mutations[0].bytes ", () -> store.write(put("a", null), null));
            isMissing("mutations[0].key ", () -> store.write(new ZLinkStoreWriteRequest(
                    List.of(), List.of(new ZLinkStoreDelete(key(null)))), null));
            isMissing("reference ", () -> blobs.read(null, null));
            isMissing("reference.value ", () -> blobs.delete(reference(null), null));
            isMissing("payload ", () -> blobs.put(reference("r"), null, MINUTE, null));
            isMissing("retention ", () -> blobs.put(reference("r"), new byte[0], null, null));
            isMissing("retention ", () -> blobs.renew(reference("r"), null, null));
            isMissing("store ", () -> ZLinkStores.ping((ZLinkLocationStore) null));
        }
        isMissing("options ", () -> new ZLinkEmbeddedLocationStore(null));
        isMissing("options ", () -> new ZLinkRedisRelocationStore(null));
        isMissing("operationTimeout ", () -> new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions().setOperationTimeout(null)));
    }

    @Test
    void whatIsWrongIsNamed() {
        try (var store = Stores.inMemory(); var blobs = Stores.blobsInMemory()) {
            isWrong("key must be 1..=1024 bytes", () -> store.read(key("k".repeat(1_025)), null));
            isWrong("key must be valid Unicode", () -> store.read(key("a\ud800b"), null));
            isWrong("mutations[0].retention must be", () -> store.write(new ZLinkStoreWriteRequest(
                    List.of(), List.of(new ZLinkStorePut(key("k"), new byte[0], Duration.ofSeconds(Long.MAX_VALUE)))), null));
            isWrong("mutations[0].retention must be", () -> store.write(new ZLinkStoreWriteRequest(
                    List.of(), List.of(new ZLinkStorePut(key("k"), new byte[0], Duration.ofSeconds(Long.MIN_VALUE)))), null));
            isWrong("mutations[0].bytes must be 0..=1048576 bytes, got 1048577", () -> store.write(put("k", new byte[1_048_577]), null));
            byte[] mib = new byte[1_048_576];
            List<ZLinkStoreMutation> five = new ArrayList<>();
            for (int index = 0; index < 5; index++) {
                five.add(new ZLinkStorePut(key("k" + index), mib, null));
            }
            isWrong("request must be at most 4194304 bytes", () -> store.write(new ZLinkStoreWriteRequest(List.of(), five), null));
            isWrong("limit must be", () -> store.scan(new ZLinkStoreScanRequest("", null, Integer.MIN_VALUE), null));
            isWrong("payload must be 0..=67108887 bytes", () -> blobs.put(reference("r"), new byte[67_108_888], MINUTE, null));
            isWrong("retention must be", () -> blobs.renew(reference("r"), Duration.ZERO, null));
            isWrong("retention must be", () -> blobs.renew(reference("r"), Duration.ofNanos(-1_000_000), null));
        }
        isWrong("connectionString must be set", () -> new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions().setKeyPrefix("p")));
        isWrong("keyPrefix must be set", () -> new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions().setConnectionString("h:1")));
        isWrong("keyPrefix must be valid Unicode", () -> new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions().setKeyPrefix("\udc00")));
        isWrong("keyPrefix must not contain", () -> new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions().setKeyPrefix("{a}")));
        isWrong("operationTimeout must be", () -> new ZLinkEmbeddedLocationStore(
                new ZLinkEmbeddedLocationOptions().setOperationTimeout(Duration.ZERO)));
        isWrong("operationTimeout must be", () -> new ZLinkEmbeddedLocationStore(
                new ZLinkEmbeddedLocationOptions().setOperationTimeout(Duration.ofMillis(-1))));
        isWrong("operationTimeout must be", () -> new ZLinkEmbeddedLocationStore(
                new ZLinkEmbeddedLocationOptions().setOperationTimeout(Duration.ofDays(10_000))));
        for (String wrong : List.of("memory:", "file:/tmp", "http://h", "redis://h:0", "redis://h/x", "redis://h?nonsense=1", "redis://")) {
            IllegalArgumentException error = isWrong("connectionString", () -> new ZLinkRedisLocationStore(
                    new ZLinkRedisLocationOptions().setConnectionString(wrong).setKeyPrefix("p")));
            assertTrue(!error.getMessage().contains("url"), error.getMessage());
        }
        IllegalArgumentException error = isWrong("connectionString", () -> new ZLinkRedisLocationStore(
                new ZLinkRedisLocationOptions().setConnectionString("redis://user:pass%zzword@h").setKeyPrefix("p")));
        assertTrue(!error.getMessage().contains("zzword"), error.getMessage());
        isWrong("one of the official stores", () -> ZLinkStores.ping(new Foreign()));
    }

    @Test
    void durationsRoundUp() throws Exception {
        try (var blobs = Stores.blobsInMemory()) {
            for (Duration little : List.of(Duration.ofNanos(1), Duration.ofNanos(999_999), Duration.ofMillis(1))) {
                ZLinkBlobReference reference = reference(little.toString());
                ZLinkBlobStored stored = (ZLinkBlobStored) await(blobs.put(reference, new byte[1], little, null));
                assertEquals(stored.storeNow().plusMillis(1), stored.expiresAt());
            }
        }
    }

    @Test
    void anArgumentErrorGoesBeforeACancellationAndAClosedStore() throws Exception {
        var store = Stores.inMemory();
        isWrong("key", () -> store.read(key(""), () -> true));
        store.close();
        isWrong("key", () -> store.read(key(""), null));
        isWrong("mutations[1].key is in the mutations twice", () -> store.write(new ZLinkStoreWriteRequest(
                List.of(), List.of(new ZLinkStoreDelete(key("a")), new ZLinkStoreDelete(key("a")))), null));
        ZLinkStoreException closed = assertInstanceOf(ZLinkStoreException.class, end(store.read(key("k"), null)));
        assertEquals("CLOSED", closed.code());
        assertEquals("notApplied", closed.outcome());
    }

    @Test
    void tenThousandRandomWrongCallsLeaveNoStagePending() throws Exception {
        Random random = new Random(7);
        var closed = Stores.inMemory();
        closed.close();
        try (TestServer redis = TestServer.redis();
                var memory = Stores.inMemory();
                var blobs = Stores.blobsInMemory();
                var remote = Stores.redis(redis.url(), Duration.ofSeconds(10))) {
            List<ZLinkLocationStore> stores = List.of(closed, memory, remote);
            List<CompletionStage<?>> stages = new ArrayList<>();
            int thrown = 0;
            for (int round = 0; round < 10_000; round++) {
                ZLinkLocationStore store = stores.get(random.nextInt(stores.size()));
                if (random.nextInt(10) == 0) {
                    Thread.currentThread().interrupt();
                }
                try {
                    stages.add(randomCall(random, store, blobs).get());
                } catch (IllegalArgumentException | NullPointerException error) {
                    thrown++;
                    assertTrue(!error.getMessage().isBlank());
                } finally {
                    Thread.interrupted();
                }
            }
            assertTrue(thrown > 1_000, "thrown " + thrown);
            for (CompletionStage<?> stage : stages) {
                end(stage);
            }
            // And the next call works.
            await(remote.write(put("k", new byte[] {1}), null));
            assertInstanceOf(ZLinkStoreReadFound.class, await(remote.read(key("k"), null)));
        }
    }

    private static Supplier<CompletionStage<?>> randomCall(Random random, ZLinkLocationStore store, ZLinkRelocationStore blobs) {
        String text = switch (random.nextInt(5)) {
            case 0 -> null;
            case 1 -> "";
            case 2 -> "x".repeat(random.nextInt(6_000));
            case 3 -> "\ud800" + random.nextInt();
            default -> "k" + random.nextInt(10);
        };
        ZLinkStoreKey key = random.nextInt(20) == 0 ? null : key(text);
        byte[] bytes = random.nextInt(10) == 0 ? null : new byte[random.nextInt(20) == 0 ? 1_048_577 : random.nextInt(9_000)];
        Duration retention = switch (random.nextInt(4)) {
            case 0 -> Duration.ofMillis(random.nextInt());
            case 1 -> Duration.ofSeconds(random.nextLong());
            default -> null;
        };
        ZLinkStoreCancellation cancellation = switch (random.nextInt(6)) {
            case 0 -> () -> true;
            case 1 -> () -> {
                throw new IllegalStateException("no idea");
            };
            case 2 -> () -> random.nextBoolean();
            default -> null;
        };
        List<ZLinkStoreCondition> conditions = new ArrayList<>();
        List<ZLinkStoreMutation> mutations = new ArrayList<>();
        for (int count = random.nextInt(4); count > 0; count--) {
            conditions.add(random.nextBoolean() ? new ZLinkStoreMissingCondition(key)
                    : new ZLinkStoreVersionCondition(key("c" + count), new ZLinkStoreVersion(text)));
            mutations.add(random.nextInt(5) == 0 ? null : random.nextBoolean()
                    ? new ZLinkStoreDelete(key)
                    : new ZLinkStorePut(key("m" + count), bytes, retention));
        }
        return switch (random.nextInt(7)) {
            case 0 -> () -> store.read(key, cancellation);
            case 1 -> () -> store.write(new ZLinkStoreWriteRequest(conditions, mutations), cancellation);
            case 2 -> () -> store.scan(new ZLinkStoreScanRequest(
                    text, random.nextBoolean() ? null : new ZLinkStoreScanCursor(text), random.nextInt(1_100) - 50), cancellation);
            case 3 -> () -> blobs.put(reference(text), bytes, retention, cancellation);
            case 4 -> () -> blobs.renew(reference(text), retention, cancellation);
            case 5 -> () -> blobs.read(reference(text), cancellation);
            default -> () -> blobs.delete(reference(text), cancellation);
        };
    }

    private static void isMissing(String name, Executable call) {
        NullPointerException error = assertThrows(NullPointerException.class, call);
        assertTrue(error.getMessage().startsWith(name), error.getMessage());
    }

    private static IllegalArgumentException isWrong(String said, Executable call) {
        IllegalArgumentException error = assertThrows(IllegalArgumentException.class, call);
        assertTrue(error.getMessage().contains(said), error.getMessage());
        return error;
    }

    /** A store that is none of ours. */
    private static final class Foreign implements ZLinkLocationStore {
        @Override
        public CompletionStage<ZLinkStoreReadResult> read(ZLinkStoreKey key, ZLinkStoreCancellation cancellation) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletionStage<ZLinkStoreWriteResult> write(ZLinkStoreWriteRequest request, ZLinkStoreCancellation cancellation) {
            throw new UnsupportedOperationException();
        }

        @Override
        public CompletionStage<ZLinkStoreScanResult> scan(ZLinkStoreScanRequest request, ZLinkStoreCancellation cancellation) {
            throw new UnsupportedOperationException();
        }
    }
}
