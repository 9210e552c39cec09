package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static systems.zlink.store.tests.support.Stores.await;
import static systems.zlink.store.tests.support.Stores.key;
import static systems.zlink.store.tests.support.Stores.put;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.store.ZLinkStores;
import systems.zlink.store.tests.support.Stores;
import systems.zlink.store.tests.support.TestServer;

/** Which threads complete stages, and that nobody's continuation holds up anybody else. */
class CompletionTest {
    private TestServer redis;
    private ZLinkRedisLocationStore store;

    @BeforeEach
    void start() throws Exception {
        redis = TestServer.redis("--proxy");
        store = Stores.redis(redis.proxyUrl(), Duration.ofSeconds(60));
        await(store.write(put("k", "value".getBytes()), null));
    }

    @AfterEach
    void stop() {
        ZLinkStores.setCompletionExecutor(null);
        redis.obey("proxy heal");
        store.close();
        redis.close();
    }

    /** A read whose stage is surely not complete when a continuation is hung on it: the reply is held back until then. */
    private <T> CompletionStage<T> later(java.util.function.Function<CompletionStage<ZLinkStoreReadResult>, CompletionStage<T>> hang) {
        redis.obey("proxy delay replies 50");
        CompletionStage<T> hung = hang.apply(store.read(key("k"), null));
        redis.obey("proxy delay replies 0");
        return hung;
    }

    @Test
    void continuationsThatBlockHoldUpNobody() throws Exception {
        CountDownLatch end = new CountDownLatch(1);
        List<CompletableFuture<?>> blocked = new ArrayList<>();
        // More than the common pool has threads.
        for (int index = 0; index < 12; index++) {
            CountDownLatch entered = new CountDownLatch(1);
            blocked.add(later(stage -> stage.thenAccept(result -> {
                entered.countDown();
                awaitLatch(end);
            })).toCompletableFuture());
            awaitLatch(entered);
        }
        // Those who wait, and those who don't.
        assertInstanceOf(ZLinkStoreReadFound.class, await(store.read(key("k"), null)));
        assertEquals("seen", await(later(stage -> stage.thenApply(result -> "seen"))));
        assertTrue(blocked.stream().noneMatch(CompletableFuture::isDone));
        end.countDown();
        await(CompletableFuture.allOf(blocked.toArray(CompletableFuture[]::new)));
    }

    /** Answers that come together are handed out together, and so is what their continuations submit, until one of them blocks. */
    @Test
    void whatOtherContinuationsHaveSubmittedGoesOnWhileOneBlocks() throws Exception {
        int together = 64;
        Thread submitter = Thread.currentThread();
        redis.obey("proxy delay replies 10");
        for (int blocks = 0; blocks < together; blocks += 7) {
            int blocking = blocks;
            CountDownLatch others = new CountDownLatch(together - 1);
            List<CompletableFuture<?>> all = new ArrayList<>();
            for (int index = 0; index < together; index++) {
                boolean waits = index == blocking;
                all.add(store.read(key("k"), null).thenCompose(first -> {
                    CompletionStage<Void> second = store.read(key("k"), null).thenAccept(found -> {
                        if (!waits) {
                            others.countDown();
                        }
                    });
                    // Where the answer was there first, this is the thread that has yet to submit the others.
                    if (waits && Thread.currentThread() != submitter) {
                        awaitLatch(others);
                    }
                    return second;
                }).toCompletableFuture());
            }
            await(CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)));
        }
    }

    @Test
    void continuationsMayWaitForOtherOperations() throws Exception {
        List<CompletableFuture<Integer>> nested = new ArrayList<>();
        for (int index = 0; index < 100; index++) {
            nested.add(nested(3).toCompletableFuture());
        }
        for (CompletableFuture<Integer> one : nested) {
            assertEquals(3, await(one));
        }
    }

    private CompletionStage<Integer> nested(int depth) {
        return store.read(key("k"), null).thenApply(result -> depth == 0 ? 0 : 1 + nested(depth - 1).toCompletableFuture().join());
    }

    @Test
    void continuationsMayWaitOnASingleThread() throws Exception {
        ExecutorService single = Executors.newSingleThreadExecutor();
        ZLinkStores.setCompletionExecutor(single);
        for (int index = 0; index < 100; index++) {
            // A thread that waits for an operation needs no other one.
            assertInstanceOf(ZLinkStoreReadFound.class, await(store.read(key("k"), null).thenApply(
                    first -> store.read(key("k"), null).thenApply(second -> second).toCompletableFuture()).thenCompose(stage -> stage)));
            assertInstanceOf(ZLinkStoreReadFound.class, await(store.read(key("k"), null).thenApply(
                    result -> store.read(key("k"), null).toCompletableFuture().join())));
        }
        single.shutdown();
    }

    @Test
    void neverOnAThreadOfOursThatOthersNeed() throws Exception {
        Set<String> threads = ConcurrentHashMap.newKeySet();
        for (int index = 0; index < 200; index++) {
            await(store.read(key("k"), null).thenAccept(result -> threads.add(Thread.currentThread().getName())));
        }
        assertTrue(threads.stream().noneMatch(Set.of("zlink-store-answers", "zlink-store-ticks", "zlink-store-payloads")::contains),
                threads.toString());
    }

    @Test
    void anExecutorCanBeChosen() throws Exception {
        ExecutorService chosen = Executors.newCachedThreadPool(task -> new Thread(task, "chosen"));
        ZLinkStores.setCompletionExecutor(chosen);
        assertEquals("chosen", await(later(stage -> stage.thenApply(result -> Thread.currentThread().getName()))));
        chosen.shutdown();
        // It refuses everything now; the stages end all the same.
        assertInstanceOf(ZLinkStoreReadFound.class, await(later(stage -> stage.thenApply(result -> result))));
        for (Executor refusing : List.<Executor>of(
                task -> {
                    throw new RejectedExecutionException();
                },
                task -> {
                    throw new OutOfMemoryError("unable to create native thread");
                })) {
            ZLinkStores.setCompletionExecutor(refusing);
            assertInstanceOf(ZLinkStoreReadFound.class, await(later(stage -> stage.thenApply(result -> result))));
        }
    }

    @Test
    void virtualThreadsWork() throws Exception {
        if (Runtime.version().feature() < 21) {
            // They come with 21; the same test runs there.
            return;
        }
        ExecutorService virtual = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        ZLinkStores.setCompletionExecutor(virtual);
        List<CompletableFuture<Integer>> all = new ArrayList<>();
        for (int index = 0; index < 1_000; index++) {
            all.add(CompletableFuture.supplyAsync(() -> nested(2).toCompletableFuture().join(), virtual));
        }
        for (CompletableFuture<Integer> one : all) {
            assertEquals(2, await(one));
        }
        virtual.shutdown();
    }

    @Test
    void dependantsThatThrowHurtNobody() throws Exception {
        for (int index = 0; index < 50; index++) {
            store.read(key("k"), null).thenAccept(result -> {
                throw new StackOverflowError();
            });
        }
        assertInstanceOf(ZLinkStoreReadFound.class, await(store.read(key("k"), null)));
    }

    @Test
    void manyThreadsMayWaitForOneStage() throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        for (int round = 0; round < 100; round++) {
            CompletableFuture<ZLinkStoreReadResult> stage = store.read(key("k"), null).toCompletableFuture();
            List<CompletableFuture<ZLinkStoreReadResult>> waiting = new ArrayList<>();
            for (int index = 0; index < 8; index++) {
                waiting.add(CompletableFuture.supplyAsync(stage::join, threads));
            }
            for (CompletableFuture<ZLinkStoreReadResult> one : waiting) {
                assertEquals(stage.join(), await(one));
            }
        }
        threads.shutdown();
    }

    private static void awaitLatch(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException error) {
            throw new AssertionError(error);
        }
    }
}
