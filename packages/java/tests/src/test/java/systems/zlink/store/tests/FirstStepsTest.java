package systems.zlink.store.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;

class FirstStepsTest {
    @Test
    void worksInMemory() {
        try (var store = new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions())) {
            var key = new ZLinkStoreKey("actor/7");
            var applied = store.write(new ZLinkStoreWriteRequest(List.of(new ZLinkStoreMissingCondition(key)), List.of(new ZLinkStorePut(key, "node-1".getBytes(), Duration.ofSeconds(30)))), null).toCompletableFuture().join();
            System.out.println(applied);
            var found = (ZLinkStoreReadFound) store.read(key, null).toCompletableFuture().join();
            System.out.println(found);
            assertArrayEquals("node-1".getBytes(), found.value().bytes());
        }
    }
}
