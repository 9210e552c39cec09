package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static systems.zlink.store.tests.support.Stores.await;
import static systems.zlink.store.tests.support.Stores.end;
import static systems.zlink.store.tests.support.Stores.key;
import static systems.zlink.store.tests.support.Stores.put;

import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import systems.zlink.store.ZLinkStoreException;
import systems.zlink.store.ZLinkStoreStats;
import systems.zlink.store.ZLinkStores;
import systems.zlink.store.tests.support.Stores;
import systems.zlink.store.tests.support.TestServer;

class HealthTest {
    @Test
    void aPingTellsTheClockOfTheEngine() throws Exception {
        try (TestServer redis = TestServer.redis();
                var store = Stores.redis(redis.url(), Duration.ofSeconds(10));
                var blobs = Stores.redisBlobs(redis.url(), Duration.ofSeconds(10));
                var memory = Stores.inMemory()) {
            Instant first = await(ZLinkStores.ping(store));
            assertTrue(!await(ZLinkStores.ping(blobs)).isBefore(first));
            assertTrue(await(ZLinkStores.ping(memory)).isAfter(Instant.EPOCH));
        }
    }

    @Test
    @SuppressWarnings("try") // Closed before its time, on purpose.
    void operationsAndFailuresAreCounted() throws Exception {
        try (TestServer redis = TestServer.redis(); var store = Stores.redis(redis.url(), Duration.ofMillis(400))) {
            await(store.write(put("k", new byte[1]), null));
            await(store.read(key("k"), null));
            await(store.read(key("k"), null));
            redis.obey("pause");
            end(store.read(key("k"), null));
            redis.obey("resume");
            ZLinkStoreStats stats = ZLinkStores.stats(store);
            assertEquals(3, stats.operations().get("read"));
            assertEquals(1, stats.operations().get("write"));
            assertEquals(1, stats.errors().get("TIMEOUT"));
            assertEquals(0, stats.inFlight());
            assertTrue(stats.commandsSent() > 0);
            assertEquals(4, stats.latencyLog2Micros().stream().mapToLong(Long::longValue).sum());
            store.close();
            assertThrows(ZLinkStoreException.class, () -> ZLinkStores.stats(store));
        }
    }
}
