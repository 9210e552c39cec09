package systems.zlink.store.tests.project;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static systems.zlink.store.tests.project.Projects.at;
import static systems.zlink.store.tests.project.Projects.inMemory;
import static systems.zlink.store.tests.project.Projects.join;
import static systems.zlink.store.tests.project.Projects.waiting;
import static systems.zlink.store.tests.support.Stores.await;
import static systems.zlink.store.tests.support.Stores.end;

import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import systems.zlink.project.state.*;

/** What is Java's own about locks: who gets a lease, who gives it back, and the rules of {@code withLock}. */
class LocksTest {
    private final Project project = inMemory();
    private final DistributedLocks locks = project.locks();

    @AfterEach
    void close() {
        project.close();
    }

    private static void invalid(String argument, Executable call) {
        ValidationException wrong = assertThrows(ValidationException.class, call);
        assertTrue(wrong.getMessage().startsWith(argument), wrong.getMessage());
    }

    private boolean isFree(String key) throws Throwable {
        Optional<LockLease> lease = join(project.locks().acquire(key));
        if (lease.isPresent()) {
            join(lease.get().release());
        }
        return lease.isPresent();
    }

    @Test
    void aLeaseKnowsWhatItIsAndMovesItsExpiry() throws Throwable {
        LockOptions options = LockOptions.defaults().withNamespace("n").withLeaseTime(Duration.ofSeconds(5));
        LockLease lease = join(locks.acquire("key", options)).orElseThrow();
        assertEquals(List.of("key", "n"), List.of(lease.key(), lease.namespace()));
        assertTrue(lease.fencingToken() > 0 && lease.fencingToken() < 1L << 53);
        assertTrue(lease.id().matches("[0-9a-f]{32}"), lease.id());
        assertFalse(lease.toString().contains(lease.id()));
        Instant before = lease.expiresAt();
        assertNull(join(lease.renew(Duration.ofMinutes(1))));
        assertFalse(lease.expiresAt().isBefore(before.plusSeconds(55)));
        join(lease.renew());
        assertTrue(lease.expiresAt().isBefore(before.plusSeconds(55)));
        join(lease.release());
        join(lease.release());
        assertInstanceOf(LockLostException.class, end(lease.renew()));
    }

    @Test
    void aLeaseIsFoundByItsId() throws Throwable {
        LockLease lease = join(locks.acquire("k")).orElseThrow();
        LockLease found = join(project.locks().attach(lease.id()));
        assertEquals(List.of(lease.key(), lease.namespace(), lease.fencingToken()),
                List.of(found.key(), found.namespace(), found.fencingToken()));
        join(found.release());
        assertInstanceOf(LockLostException.class, end(lease.release()));
        assertInstanceOf(LockLostException.class, end(locks.attach(lease.id())));
        assertInstanceOf(LockLostException.class, end(locks.attach("\ud800")));
        // An attach that nobody waits for leaves the lease to its holder.
        LockLease held = join(locks.acquire("k")).orElseThrow();
        locks.attach(held.id(), () -> true);
        locks.attach(held.id()).toCompletableFuture().cancel(false);
        join(held.renew());
    }

    @Test
    void wrongArgumentsAreThrownByTheCall() throws Throwable {
        invalid("key", () -> locks.acquire("a b"));
        invalid("namespace", () -> locks.acquire("k", LockOptions.defaults().withNamespace("")));
        for (Duration wrong : List.of(Duration.ofNanos(-1), Duration.ofMillis(10_001), Duration.ofSeconds(Long.MAX_VALUE))) {
            invalid("waitMs", () -> locks.acquire("k", LockOptions.defaults().withWaitTime(wrong)));
            invalid("waitMs", () -> locks.withLock("k", LockOptions.defaults().withWaitTime(wrong), lease -> fail()));
        }
        for (Duration wrong : List.of(Duration.ZERO, Duration.ofMillis(4_999), Duration.ofMillis(60_001))) {
            invalid("leaseMs", () -> locks.acquire("k", LockOptions.defaults().withLeaseTime(wrong)));
        }
        LockLease lease = join(locks.acquire("k")).orElseThrow();
        invalid("leaseMs", () -> lease.renew(Duration.ZERO));
        for (Executable call : List.<Executable>of(
                () -> locks.acquire(null), () -> locks.attach(null), () -> locks.withLock("k", null), () -> project.locks(null))) {
            assertThrows(NullPointerException.class, call);
        }
    }

    @Test
    void theSeventeenthLeaseIsRefused() throws Throwable {
        for (int lease = 0; lease < 16; lease++) {
            join(locks.acquire("k" + lease));
        }
        invalid("leases", () -> locks.acquire("k16"));
        assertTrue(isFree("k16"));
    }

    @Test
    void anEndedAcquireLeavesItsPlaceAtOnce() throws Throwable {
        join(project.locks().acquire("held"));
        for (int lease = 0; lease < 15; lease++) {
            join(locks.acquire("k" + lease));
        }
        for (int round = 0; round < 200; round++) {
            CompletableFuture<Optional<LockLease>> waiting = locks.acquire("held", waiting(10_000)).toCompletableFuture();
            invalid("leases", () -> locks.acquire("k15"));
            assertTrue(waiting.cancel(false));
            join(join(locks.acquire("k15")).orElseThrow().release());
        }
    }

    @Test
    void whatFollowsAnEndedAcquireFindsItsPlaceFree() throws Throwable {
        join(project.locks().acquire("held"));
        for (int lease = 0; lease < 15; lease++) {
            join(locks.acquire("k" + lease));
        }
        for (int round = 0; round < 200; round++) {
            CompletableFuture<Optional<LockLease>> waiting = locks.acquire("held", waiting(10_000)).toCompletableFuture();
            CompletableFuture<Optional<LockLease>> next =
                    waiting.handle((none, ended) -> locks.acquire("k15")).thenCompose(acquire -> acquire);
            assertTrue(round % 2 == 0 ? waiting.cancel(false) : waiting.completeExceptionally(new IOException()));
            join(join(next).orElseThrow().release());
        }
    }

    @Test
    void aDeadlineCutsTheWait() throws Throwable {
        join(locks.acquire("k"));
        for (Instant deadline : List.of(Instant.now(), Instant.MIN, Instant.EPOCH, Instant.now().plusMillis(20))) {
            assertEquals(Optional.empty(), join(project.locks(deadline).acquire("k", waiting(10_000))));
        }
        assertEquals(Optional.empty(), join(project.locks(Instant.MAX).acquire("k", waiting(1))));
    }

    @Test
    void aWaitThatIsEndedLeavesNothingBehind() throws Throwable {
        LockLease held = join(locks.acquire("k")).orElseThrow();
        DistributedLocks waiters = project.locks();
        for (int round = 0; round < 100; round++) {
            AtomicBoolean requested = new AtomicBoolean();
            CompletableFuture<Optional<LockLease>> waiting =
                    waiters.acquire("k", waiting(10_000), round % 20 == 0 ? requested::get : null).toCompletableFuture();
            assertFalse(waiting.isDone());
            switch (round % 4) {
                case 0 -> {
                    requested.set(true);
                    if (round % 20 != 0) {
                        waiting.cancel(false);
                    }
                    assertThrows(CancellationException.class, () -> await(waiting));
                }
                case 1 -> waiting.complete(Optional.empty());
                case 2 -> assertInstanceOf(TimeoutException.class, end(waiting.orTimeout(1, TimeUnit.MILLISECONDS)));
                default -> waiting.cancel(true);
            }
        }
        join(held.release());
        // All places of the invocation are free again, and so is the lock.
        assertTrue(join(waiters.acquire("k", waiting(10_000))).isPresent());
    }

    @Test
    void aLeaseThatComesWhenItsCallerIsGoneIsGivenBack() throws Throwable {
        for (int round = 0; round < 200; round++) {
            String key = "k" + round;
            LockLease held = join(locks.acquire(key)).orElseThrow();
            CompletableFuture<Optional<LockLease>> waiting = project.locks().acquire(key, waiting(10_000)).toCompletableFuture();
            // The release wakes the waiter on a thread of native code; its lease may be anywhere on its way when the caller leaves.
            CompletionStage<Void> released = held.release();
            for (int spin = 0; spin < round * 50; spin++) {
                Thread.onSpinWait();
            }
            boolean left = waiting.cancel(false);
            join(released);
            if (!left) {
                join(waiting.join().orElseThrow().release());
            }
            LockLease next = join(project.locks().acquire(key, waiting(5_000)))
                    .orElseThrow(() -> new AssertionError("somebody holds it for the rest of the 30 s"));
            join(next.release());
        }
    }

    @Test
    void whatIsForgottenIsForgottenInNativeCodeToo() throws Throwable {
        String url = "memory:forgotten";
        try (Project other = at(url)) {
            for (int round = 0; round < 20_000; round++) {
                DistributedLocks some = other.locks();
                join(join(some.acquire("k")).orElseThrow().release());
            }
            System.gc();
            assertTrue(join(other.locks().acquire("k")).isPresent());
        }
    }

    // ---- withLock --------------------------------------------------------------------------------------------------------------

    @Test
    void theWorkIsDoneWhileTheLockIsHeld() throws Throwable {
        List<Boolean> free = new ArrayList<>();
        assertEquals("n/k", join(locks.withLock("k", LockOptions.defaults().withNamespace("n"), lease -> {
            free.add(project.locks().acquire("k", LockOptions.defaults().withNamespace("n")).toCompletableFuture().join().isPresent());
            return CompletableFuture.completedStage(lease.namespace() + "/" + lease.key());
        })));
        assertEquals(List.of(false), free);
        assertNull(join(locks.<Void>withLock("k", lease -> CompletableFuture.completedStage(null))));
        assertTrue(isFree("k"));
    }

    @Test
    void withoutTheLockTheWorkIsNotBegun() throws Throwable {
        join(locks.acquire("k"));
        Object end = end(locks.withLock("k", waiting(20), lease -> fail()));
        assertTrue(assertInstanceOf(LockUnavailableException.class, end).getMessage().contains("\"k\" in namespace \"default\""));
    }

    @Test
    void theWorksOwnExceptionComesOut() throws Throwable {
        IllegalStateException own = new IllegalStateException("own");
        assertSame(own, end(locks.withLock("k", lease -> {
            throw own;
        })));
        assertTrue(isFree("k"));
        assertSame(own, end(locks.withLock("k", lease -> CompletableFuture.failedStage(own))));
        assertSame(own, end(locks.withLock("k", lease -> CompletableFuture.completedStage(1).thenApply(one -> {
            throw own;
        }))));
        StackOverflowError error = new StackOverflowError();
        assertSame(error, end(locks.withLock("k", lease -> {
            throw error;
        })));
        assertInstanceOf(NullPointerException.class, end(locks.withLock("k", lease -> null)));
        assertTrue(isFree("k"));
    }

    @Test
    void anErrorOfTheReleaseTakesThePlaceOfTheResult() throws Throwable {
        assertInstanceOf(LockLostException.class, end(locks.withLock("k", lease ->
                locks.attach(lease.id()).thenCompose(LockLease::release).thenApply(released -> "done"))));
        IllegalStateException own = new IllegalStateException("own");
        assertSame(own, end(locks.withLock("k", lease ->
                locks.attach(lease.id()).thenCompose(LockLease::release).thenApply(released -> {
                    throw own;
                }))));
        // Released by the work itself: again through the same object, it does nothing.
        assertEquals("done", join(locks.withLock("k", lease -> lease.release().thenApply(released -> "done"))));
    }

    @Test
    void aCancellationEndsTheWaitAlone() throws Throwable {
        assertInstanceOf(CancellationException.class, end(locks.withLock("k", null, lease -> fail(), () -> true)));
        LockLease held = join(locks.acquire("k")).orElseThrow();
        CompletableFuture<Object> waiting = locks.withLock("k", waiting(10_000), lease -> fail()).toCompletableFuture();
        assertTrue(waiting.cancel(false));
        join(held.release());
        assertTrue(join(locks.acquire("k", waiting(5_000))).map(LockLease::release).isPresent());

        // Work that has begun goes on, and the release follows it.
        CompletableFuture<String> work = new CompletableFuture<>();
        AtomicBoolean requested = new AtomicBoolean();
        CompletableFuture<String> working = locks.withLock("w", null, lease -> work, requested::get).toCompletableFuture();
        requested.set(true);
        assertFalse(isFree("w"));
        assertTrue(working.cancel(false));
        assertFalse(isFree("w"));
        work.complete("done");
        assertTrue(join(project.locks().acquire("w", waiting(5_000))).isPresent());
    }
}
