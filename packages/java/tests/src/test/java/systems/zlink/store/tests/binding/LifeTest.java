package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static systems.zlink.store.tests.support.Stores.await;
import static systems.zlink.store.tests.support.Stores.end;
import static systems.zlink.store.tests.support.Stores.key;
import static systems.zlink.store.tests.support.Stores.put;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.store.ZLinkStoreException;
import systems.zlink.store.tests.support.Child;
import systems.zlink.store.tests.support.Stores;
import systems.zlink.store.tests.support.TestServer;

/** Opening, closing, leaving behind. */
class LifeTest {
    private static TestServer redis;

    @BeforeAll
    static void start() {
        redis = TestServer.redis("--proxy");
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    @Test
    void nothingConnectsBeforeItIsNeeded() {
        try (var store = Stores.redis("redis://localhost:1", Duration.ofSeconds(1))) {
            assertTrue(store.toString().startsWith("systems.zlink"));
        }
    }

    @Test
    @SuppressWarnings("try") // Closed before its time, on purpose.
    void closingIsDoneOnceAndFailsWhatComesLater() throws Exception {
        try (var store = Stores.redis(redis.url(), Duration.ofSeconds(10)); var neighbour = Stores.redis(redis.url(), Duration.ofSeconds(10))) {
            await(store.write(put("k", new byte[] {1}), null));
            store.close();
            store.close();
            ZLinkStoreException closed = assertInstanceOf(ZLinkStoreException.class, end(store.read(key("k"), null)));
            assertEquals("CLOSED", closed.code());
            assertTrue(!closed.retryable());
            assertInstanceOf(ZLinkStoreReadFound.class, await(neighbour.read(key("k"), null)));
        }
    }

    @Test
    void closingWaitsForWhatIsUnderWay() throws Exception {
        redis.obey("proxy delay replies 300");
        List<CompletionStage<?>> underWay = new ArrayList<>();
        var store = Stores.redis(redis.proxyUrl(), Duration.ofSeconds(30));
        for (int index = 0; index < 50; index++) {
            underWay.add(store.write(put("k" + index, new byte[10]), null));
        }
        store.close();
        redis.obey("proxy delay replies 0");
        for (CompletionStage<?> stage : underWay) {
            assertInstanceOf(ZLinkStoreWriteApplied.class, end(stage));
        }
    }

    @Test
    void closingEndsWithTheOperationTimeout() throws Exception {
        var store = Stores.redis(redis.proxyUrl(), Duration.ofMillis(500));
        await(store.read(key("k"), null));
        redis.obey("proxy swallow");
        CompletionStage<?> silent = store.read(key("k"), null);
        store.close();
        redis.obey("proxy heal");
        assertEquals("TIMEOUT", ((systems.zlink.store.ZLinkStoreFailure) end(silent)).code());
    }

    @Test
    void closingFromSeveralThreadsAtOnce() throws Exception {
        for (int round = 0; round < 20; round++) {
            var store = Stores.redis(redis.url(), Duration.ofSeconds(10));
            CompletionStage<?> read = store.read(key("k"), null);
            List<CompletableFuture<?>> closing = new ArrayList<>();
            for (int thread = 0; thread < 4; thread++) {
                closing.add(CompletableFuture.runAsync(store::close));
            }
            for (CompletableFuture<?> one : closing) {
                await(one);
            }
            end(read);
        }
    }

    @Test
    void whatIsLeftBehindIsCleanedUp() throws Exception {
        int before = connections();
        for (int index = 0; index < 20; index++) {
            // A connection of its own for each: a store with other settings shares none.
            await(Stores.redis(redis.url() + "?client_name=left" + index, Duration.ofSeconds(10)).read(key("k"), null));
        }
        assertTrue(connections() > before);
        Poll.until("connections closed", () -> {
            System.gc();
            return connections() <= before;
        });
    }

    private static int connections() {
        return redis.obey("clients").get("clients").getAsInt();
    }

    @Test
    void theThreadsOfOursEndWithTheLastStore() throws Exception {
        // In a machine of its own: scenarios, which have stores open, run beside this test.
        assertTrue(new Child().run(Exits.class, "threads", redis.url()).orFail().contains("threads ended"));
    }

    @Test
    void theProcessEndsByItselfWithAnOpenStore() throws Exception {
        endsSoonAfterMain("idle", redis.url());
    }

    @Test
    void theProcessEndsByItselfWithOperationsInFlight() throws Exception {
        try (TestServer silent = TestServer.redis("--proxy")) {
            silent.obey("proxy swallow");
            assertTrue(endsSoonAfterMain("in-flight", silent.proxyUrl()).contains("200 pending"));
        }
    }

    @Test
    void exitInTheMiddleIsNoCrash() throws Exception {
        for (int round = 0; round < 3; round++) {
            new Child().run(Exits.class, "exit", redis.url()).orFail();
        }
    }

    private static String endsSoonAfterMain(String what, String url) throws Exception {
        String said = new Child().run(Exits.class, what, url).orFail();
        long ended = System.currentTimeMillis();
        String[] lines = said.strip().split("\n");
        long main = Long.parseLong(lines[lines.length - 1].replaceAll("\\D", ""));
        assertTrue(ended - main < 2_000, "it went on for " + (ended - main) + " ms");
        return said;
    }
}
