package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import systems.zlink.store.tests.support.Child;
import systems.zlink.store.tests.support.Stores;
import systems.zlink.store.tests.support.TestServer;

class MemoryTest {
    private static final int LARGEST = 64 << 20;

    /** A heap that has no room for an answer, and one that has no room at all. */
    @Test
    void withoutMemoryEveryStageEnds() throws Exception {
        try (TestServer redis = TestServer.redis(); var blobs = Stores.redisBlobs(redis.url(), Duration.ofSeconds(60))) {
            Stores.await(blobs.put(Stores.reference("huge"), new byte[LARGEST], Duration.ofHours(1), null));
            String said = new Child().options("-Xmx40m", "-XX:+UseSerialGC").run(Starved.class, redis.url()).orFail();
            assertTrue(said.contains("large: all ended") && said.contains("full: all ended"), said);
        }
    }
}
