package systems.zlink.store.tests.binding;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static systems.zlink.store.tests.support.Stores.await;
import static systems.zlink.store.tests.support.Stores.end;
import static systems.zlink.store.tests.support.Stores.key;
import static systems.zlink.store.tests.support.Stores.put;
import static systems.zlink.store.tests.support.Stores.reference;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.store.ZLinkStoreFailure;
import systems.zlink.store.tests.support.Stores;
import systems.zlink.store.tests.support.TestServer;

/** Cancellation, by callback and by the future, against a Redis that can be made to say nothing. */
class CancellationTest {
    private TestServer redis;
    private ZLinkRedisLocationStore store;

    @BeforeEach
    void start() {
        redis = TestServer.redis("--proxy");
        store = Stores.redis(redis.proxyUrl(), Duration.ofSeconds(60));
    }

    @AfterEach
    void stop() {
        redis.obey("proxy heal");
        store.close();
        redis.close();
    }

    /** From now on nothing is answered. */
    private void silence() throws Exception {
        await(store.read(key("connected"), null));
        redis.obey("proxy swallow");
    }

    @Test
    void whatIsCancelledBeforeTheCallIsNeverSent() throws Exception {
        await(store.write(put("connected", new byte[1]), null));
        int reads = commands("MULTI");
        int writes = commands("EVALSHA", "EVAL");
        assertInstanceOf(CancellationException.class, end(store.write(put("k", new byte[1]), () -> true)));
        assertTrue(store.read(key("k"), () -> true).toCompletableFuture().isCancelled());
        // What was sent before these has arrived before them.
        await(store.write(put("other", new byte[1]), null));
        await(store.read(key("other"), null));
        assertEquals(writes + 1, commands("EVALSHA", "EVAL"));
        assertEquals(reads + 1, commands("MULTI"));
    }

    /** How many of these the server was sent. A store sends others by itself, when it likes: it looks at the memory policy, and for what has expired. */
    private int commands(String... names) {
        var sent = redis.obey("proxy stats").getAsJsonObject("commands");
        return Stream.of(names).mapToInt(name -> sent.has(name) ? sent.get(name).getAsInt() : 0).sum();
    }

    @Test
    void aRequestWhileWaitingEndsTheStage() throws Exception {
        silence();
        AtomicBoolean requested = new AtomicBoolean();
        CompletableFuture<?> waiting = store.read(key("k"), requested::get).toCompletableFuture();
        assertThrows(TimeoutException.class, () -> waiting.get(50, TimeUnit.MILLISECONDS));
        requested.set(true);
        assertThrows(CancellationException.class, () -> await(waiting));
        assertTrue(waiting.isCancelled());
    }

    @Test
    void theFutureCanBeCancelled() throws Exception {
        silence();
        CompletableFuture<?> waiting = store.write(put("k", new byte[1]), null).toCompletableFuture();
        assertTrue(waiting.cancel(true));
        assertThrows(CancellationException.class, () -> await(waiting));
        // The operation was given up: closing does not wait for it.
        CompletableFuture<?> other = store.read(key("k"), null).toCompletableFuture().orTimeout(1, TimeUnit.MILLISECONDS);
        assertInstanceOf(TimeoutException.class, end(other));
        store.close();
    }

    @Test
    void aThrowingCancellationEndsItsOwnOperationWithWhatItThrew() throws Exception {
        silence();
        CompletableFuture<?> neighbour = store.read(key("k"), () -> false).toCompletableFuture();
        for (Throwable thrown : List.of(new IllegalStateException("mine"), new StackOverflowError(), new AssertionError("mine"))) {
            assertSame(thrown, end(store.read(key("k"), throwingAt(1, thrown))));
            assertSame(thrown, end(store.read(key("k"), throwingAt(3, thrown))));
        }
        assertTrue(!neighbour.isDone());
        neighbour.cancel(true);
    }

    private static ZLinkStoreCancellation throwingAt(int call, Throwable thrown) {
        int[] calls = new int[1];
        return () -> {
            if (++calls[0] >= call) {
                sneak(thrown);
            }
            return false;
        };
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void sneak(Throwable thrown) throws T {
        throw (T) thrown;
    }

    @Test
    void aBlockingCancellationHoldsUpNobodyElse() throws Exception {
        silence();
        CountDownLatch end = new CountDownLatch(1);
        List<CompletableFuture<?>> blocked = new ArrayList<>();
        for (int index = 0; index < 5; index++) {
            int[] calls = new int[1];
            blocked.add(store.read(key("k"), () -> {
                if (++calls[0] > 1) {
                    awaitLatch(end);
                }
                return false;
            }).toCompletableFuture());
        }
        AtomicBoolean requested = new AtomicBoolean();
        CompletableFuture<?> other = store.read(key("k"), requested::get).toCompletableFuture();
        requested.set(true);
        assertThrows(CancellationException.class, () -> await(other));
        assertTrue(blocked.stream().noneMatch(CompletableFuture::isDone));
        end.countDown();
        blocked.forEach(stage -> stage.cancel(true));
    }

    private static void awaitLatch(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException error) {
            throw new AssertionError(error);
        }
    }

    @Test
    void anInterruptedWaitLeavesTheOperationAlone() throws Exception {
        silence();
        CompletableFuture<?> waiting = store.read(key("k"), null).toCompletableFuture();
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, waiting::get);
        assertTrue(!waiting.isDone());
        waiting.cancel(true);
    }

    /** Whatever ends a stage, at whatever moment: a thread that waits for it is woken. */
    @Test
    void whoWaitsLearnsOfEveryEnd() throws Exception {
        silence();
        List<Consumer<CompletableFuture<ZLinkStoreReadResult>>> ends = List.of(
                stage -> stage.cancel(true),
                stage -> stage.complete(new ZLinkStoreReadMissing(Instant.EPOCH)),
                stage -> stage.completeExceptionally(new IllegalStateException("mine")),
                stage -> stage.orTimeout(1, TimeUnit.MILLISECONDS));
        for (int round = 0; round < 80; round++) {
            CompletableFuture<ZLinkStoreReadResult> stage = store.read(key("k"), round % 8 == 0 ? () -> false : null).toCompletableFuture();
            List<Thread> waiting = new ArrayList<>();
            for (Callable<?> wait : List.<Callable<?>>of(stage::join, stage::get, () -> stage.get(60, TimeUnit.SECONDS))) {
                waiting.add(new Thread(() -> {
                    try {
                        wait.call();
                    } catch (Exception ended) {
                        // It need only end.
                    }
                }));
            }
            waiting.forEach(Thread::start);
            Thread.sleep(round % 9);
            ends.get(round % ends.size()).accept(stage);
            for (Thread thread : waiting) {
                thread.join(30_000);
                assertFalse(thread.isAlive(), "round " + round);
            }
        }
    }

    @Test
    void whoWaitsCanBeInterruptedAtAnyMoment() throws Exception {
        silence();
        for (int round = 0; round < 40; round++) {
            CompletableFuture<?> stage = store.read(key("k"), null).toCompletableFuture();
            CompletableFuture<Object> how = new CompletableFuture<>();
            Thread waiting = new Thread(() -> {
                try {
                    how.complete(stage.get());
                } catch (InterruptedException | ExecutionException ended) {
                    how.complete(ended);
                }
            });
            waiting.start();
            Thread.sleep(round % 9);
            waiting.interrupt();
            assertInstanceOf(InterruptedException.class, await(how));
            assertFalse(stage.isDone());
            stage.cancel(true);
        }
    }

    /** The answer comes while a wait with a limit begins, goes on or ends. */
    @Test
    void aWaitThatIsOverLosesNoAnswer() throws Exception {
        await(store.write(put("k", new byte[1]), null));
        for (int round = 0; round < 120; round++) {
            redis.obey("proxy delay replies " + round % 9);
            CompletableFuture<ZLinkStoreReadResult> stage = store.read(key("k"), null).toCompletableFuture();
            try {
                assertInstanceOf(ZLinkStoreReadFound.class, stage.get(round % 11, TimeUnit.MILLISECONDS));
            } catch (TimeoutException early) {
                assertInstanceOf(ZLinkStoreReadFound.class, (round & 1) == 0 ? stage.join() : await(stage));
            }
        }
    }

    @Test
    void aTimeoutTellsItsOutcome() throws Exception {
        try (var hasty = Stores.redis(redis.proxyUrl(), Duration.ofMillis(300))) {
            await(hasty.read(key("connected"), null));
            redis.obey("proxy swallow");
            ExecutionException ended = assertThrows(ExecutionException.class, () -> await(hasty.write(put("k", new byte[1]), null)));
            TimeoutException timeout = assertInstanceOf(TimeoutException.class, ended.getCause());
            ZLinkStoreFailure failure = assertInstanceOf(ZLinkStoreFailure.class, timeout);
            assertEquals("TIMEOUT", failure.code());
            assertEquals("unknown", failure.outcome());
            assertTrue(failure.retryable());
        }
    }

    /** After the stage's end the caller may do with the array what it likes: it never becomes a part of what is stored. */
    @Test
    void aCancelledPutNeverReadsTheArrayAgain() throws Exception {
        redis.obey("proxy throttle 50000000");
        Random random = new Random(3);
        try (var blobs = Stores.redisBlobs(redis.proxyUrl(), Duration.ofSeconds(60))) {
            for (int round = 0; round < 20; round++) {
                byte[] payload = new byte[4 * 1024 * 1024];
                Arrays.fill(payload, (byte) 1);
                ZLinkBlobReference reference = reference("r" + round);
                CompletableFuture<?> putting = blobs.put(reference, payload, Duration.ofMinutes(1), null).toCompletableFuture();
                try {
                    putting.get(random.nextInt(80), TimeUnit.MILLISECONDS);
                } catch (TimeoutException expected) {
                    putting.cancel(true);
                }
                Arrays.fill(payload, (byte) 2);
                if (await(blobs.read(reference, null)) instanceof ZLinkBlobFound found) {
                    for (byte one : found.bytes()) {
                        if (one != 1) {
                            throw new AssertionError("torn in round " + round);
                        }
                    }
                }
            }
            byte[] whole = new byte[1024 * 1024];
            random.nextBytes(whole);
            assertInstanceOf(ZLinkBlobStored.class, await(blobs.put(reference("whole"), whole, Duration.ofMinutes(1), null)));
            assertArrayEquals(whole, ((ZLinkBlobFound) await(blobs.read(reference("whole"), null))).bytes());
        }
    }
}
