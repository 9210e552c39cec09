package systems.zlink.store.internal;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import systems.zlink.framework.locationprovider.ZLinkStoreKey;

/**
 * One operation, as its caller sees it.
 *
 * <p>The thread that collects answers only lets them {@link #arrive}. Whoever has a use for the result settles the call: a thread that waits
 * in {@code join} or {@code get} does it itself, without another thread's help, and is woken at once (for a moment it waits in native code,
 * where the answer comes to it past the thread that collects); otherwise {@link Completions} does.
 * So continuations, which are foreign code, never run on the collecting thread.
 */
final class Call<T> extends CompletableFuture<T> {
    private static final VarHandle ARRIVED;
    private static final VarHandle SETTLED;
    private static final VarHandle WAITERS;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            ARRIVED = lookup.findVarHandle(Call.class, "arrived", Object.class);
            SETTLED = lookup.findVarHandle(Call.class, "settled", boolean.class);
            WAITERS = lookup.findVarHandle(Call.class, "waiters", Waiters.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    /** How long a thread waits in native code, where it cannot be interrupted. */
    private static final int DIRECTLY_MS = 5;

    private final int asked;
    /** The keys of a write's puts, in order; else {@code null}. */
    private final List<ZLinkStoreKey> puts;

    /** Makes the result of the answer; {@code null}: they are the same. */
    private final Finish<T> finish;

    /** Under which native code knows the operation; 0 before it was taken. */
    private int ticket;

    /** The payload of a large put, as long as the stage has not ended. Guarded by {@code this}. */
    private byte[] payload;

    /** A record, or what went wrong on the way. */
    private volatile Object arrived;

    private volatile boolean settled;
    private volatile Waiters waiters;

    Call(int asked) {
        this(asked, null, null, null);
    }

    /** An operation whose result {@code finish} makes: foreign code, which runs where continuations do. */
    Call(int asked, Finish<T> finish) {
        this(asked, null, null, finish);
    }

    /** A write. */
    Call(int asked, List<ZLinkStoreKey> puts) {
        this(asked, puts, null, null);
    }

    /** A put, of whose payload native code asks for parts. */
    Call(int asked, byte[] payload) {
        this(asked, null, payload, null);
    }

    private Call(int asked, List<ZLinkStoreKey> puts, byte[] payload, Finish<T> finish) {
        this.asked = asked;
        this.puts = puts;
        this.payload = payload;
        this.finish = finish;
    }

    int asked() {
        return asked;
    }

    int ticket() {
        return ticket;
    }

    void ticket(int number) {
        ticket = number;
    }

    // ---- on threads that run no foreign code --------------------------------------------------------------------------------

    /** Takes the answer: a record of its own, or a {@link Throwable} that stands in its place. */
    void arrive(Object answer) {
        arrive(answer, false);
    }

    /** Takes the answer; when {@code othersFollow}, the caller says {@link Completions#settleWhatWaits} after the last. */
    void arrive(Object answer, boolean othersFollow) {
        if (ARRIVED.compareAndSet(this, null, answer) || arrived == answer) {
            settleSoon(othersFollow);
            return;
        }
        if (answer instanceof byte[] record) {
            // Too late for the caller; but native code may keep something for it.
            Completions.runSoon(() -> Answers.discard(asked, puts, record));
        }
        if (!settled) {
            // Whoever was first may have lacked the memory.
            settleSoon(othersFollow);
        }
    }

    /** Ends the operation in the caller's name. */
    void end(Throwable why) {
        if (ARRIVED.compareAndSet(this, null, why)) {
            Native.cancel(ticket);
            settleSoon(false);
        }
    }

    private void settleSoon(boolean othersFollow) {
        Waiters waiting = waiters;
        if (waiting != null && waiting.direct) {
            // It must look here, not where answers come in.
            Native.release(ticket);
        }
        if (waiting == null || !waiting.takeOver()) {
            Completions.settleSoon(this, othersFollow);
        }
    }

    // ---- on whichever thread has a use for the result --------------------------------------------------------------------------

    /** Completes the stage with what has arrived. Does nothing if that is done, or nothing has arrived. */
    void settle() {
        Object answer = arrived;
        if (answer == null || !SETTLED.compareAndSet(this, false, true)) {
            return;
        }
        // A record is unpacked even if nobody wants the result any more: that gives back what native code keeps for it.
        T result = null;
        Throwable failure = null;
        try {
            result = finished(unpack(answer));
        } catch (Throwable thrown) {
            failure = thrown;
        }
        release();
        if (!completed(result, failure) && answer instanceof byte[] record && Unpacker.kind(record, 0) == Wire.LEASE) {
            Answers.unwantedLease(asked, record);
        }
    }

    /** Whether the caller has got the result. */
    private boolean completed(T result, Throwable failure) {
        while (true) {
            try {
                if (failure == null) {
                    return super.complete(result);
                }
                super.completeExceptionally(failure);
                return false;
            } catch (OutOfMemoryError error) {
                if (isDone()) {
                    throw error;
                }
                Threads.awaitMemory();
            }
        }
    }

    @SuppressWarnings("unchecked") // What was asked for says what the answer holds.
    private T finished(Object unpacked) throws Exception {
        return finish == null || isDone() ? (T) unpacked : finish.of(unpacked);
    }

    private Object unpack(Object answer) throws Throwable {
        if (answer instanceof Throwable failure) {
            throw failure;
        }
        try {
            return Answers.result(asked, puts, (byte[]) answer, 0);
        } catch (Error noRoom) {
            throw Answers.internal("there was no room in memory for the answer", noRoom);
        }
    }

    /** Settles at once: nobody has seen this call yet. */
    void arrivedAtOnce(Object answer) {
        arrived = answer;
        settle();
    }

    // ---- the caller leaves early -----------------------------------------------------------------------------------------------

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        return abandon(new CancellationException(), () -> super.cancel(mayInterruptIfRunning));
    }

    @Override
    public boolean complete(T value) {
        return abandon(new CancellationException(), () -> super.complete(value));
    }

    @Override
    public boolean completeExceptionally(Throwable failure) {
        return abandon(failure, () -> super.completeExceptionally(failure));
    }

    /**
     * Ends the operation, and then the stage, whose continuations rely on that: an acquire that its caller has ended takes no place any more.
     */
    private boolean abandon(Throwable why, BooleanSupplier end) {
        boolean mine = ticket != 0 && !isDone() && SETTLED.compareAndSet(this, false, true);
        if (!mine) {
            // It may be over, or another thread be about to settle it.
            boolean ended = end.getAsBoolean();
            if (ended && ticket != 0) {
                release();
                Native.cancel(ticket);
            }
            return ended;
        }
        Native.cancel(ticket);
        if (!ARRIVED.compareAndSet(this, null, why) && arrived instanceof byte[] record) {
            Completions.runSoon(() -> Answers.discard(asked, puts, record));
        }
        release();
        try {
            return end.getAsBoolean();
        } catch (OutOfMemoryError error) {
            settled = isDone();
            if (!settled) {
                settleSoon(false);
            }
            throw error;
        }
    }

    private synchronized void release() {
        payload = null;
    }

    /** Gives native code a part of the payload. Once the stage has ended, the caller's array is not read any more. */
    synchronized void segment(int question, int start, int end) {
        Native.segment(question, isDone() ? null : payload, start, end);
    }

    // ---- waiting ---------------------------------------------------------------------------------------------------------------

    @Override
    public T join() {
        if (!isDone()) {
            Waiters waiting = waiters();
            boolean entered = waiting.enter();
            try {
                if (entered && mustWait(waiting, Long.MAX_VALUE)) {
                    waiting.woken.join();
                }
            } finally {
                leave(waiting, entered);
            }
        }
        return super.join();
    }

    @Override
    public T get() throws InterruptedException, ExecutionException {
        if (!isDone()) {
            Waiters waiting = waiters();
            boolean entered = waiting.enter();
            try {
                if (entered && mustWait(waiting, Long.MAX_VALUE)) {
                    waiting.woken.get();
                }
            } finally {
                leave(waiting, entered);
            }
        }
        return super.get();
    }

    @Override
    public T get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        if (!isDone()) {
            long end = System.nanoTime() + unit.toNanos(timeout);
            Waiters waiting = waiters();
            boolean entered = waiting.enter();
            try {
                if (entered && mustWait(waiting, unit.toNanos(timeout))) {
                    waiting.woken.get(end - System.nanoTime(), TimeUnit.NANOSECONDS);
                }
            } finally {
                leave(waiting, entered);
            }
        }
        return super.get(timeout, unit);
    }

    private Waiters waiters() {
        Waiters waiting = waiters;
        if (waiting != null) {
            return waiting;
        }
        Waiters first = new Waiters();
        Waiters before = (Waiters) WAITERS.compareAndExchange(this, null, first);
        return before == null ? first : before;
    }

    /** Whether the answer has not arrived; a thread that may do so waits a moment for it right here, at most {@code nanos}. */
    private boolean mustWait(Waiters waiting, long nanos) {
        byte[] record = null;
        Completions.beforeWaiting();
        if (arrived == null && nanos >= DIRECTLY_MS * 1_000_000L && Threads.mayWaitInNativeCode() && waiting.begin()) {
            try {
                if (arrived == null && !isDone()) {
                    record = Collector.await(ticket, DIRECTLY_MS);
                }
            } catch (RuntimeException | Error failure) {
                // Nothing is lost: the answer goes to the thread that collects.
            } finally {
                waiting.direct = false;
            }
            if (record != null) {
                arrive(record);
            }
        }
        if (arrived != null) {
            return false;
        }
        if (waiting.alone()) {
            // Somebody else may end the stage: a cancellation, orTimeout, complete.
            super.whenComplete((result, failure) -> waiting.woken.complete(null));
        }
        return true;
    }

    private void leave(Waiters waiting, boolean entered) {
        if (entered) {
            waiting.leave();
        }
        // If the answer was left to those who wait, it is up to us; else it does no harm.
        settle();
    }

    /** The threads that wait for one call, which can settle it. */
    private static final class Waiters {
        private static final int TAKEN_OVER = -1;

        /** Completed by the collecting thread, which is safe: only waiting threads of ours depend on it. */
        final CompletableFuture<Void> woken = new CompletableFuture<>();

        private final AtomicInteger count = new AtomicInteger();
        private volatile boolean watching;
        /** Whether a thread waits in native code, or is about to. */
        volatile boolean direct;

        /** False: the answer has been left to others who waited, and is there. */
        boolean enter() {
            return count.getAndUpdate(waiting -> waiting == TAKEN_OVER ? waiting : waiting + 1) != TAKEN_OVER;
        }

        void leave() {
            count.getAndUpdate(waiting -> waiting == TAKEN_OVER ? waiting : waiting - 1);
        }

        /** Leaves the answer to those who wait now, if there are any: each of them settles the call when it leaves. */
        boolean takeOver() {
            if (count.getAndUpdate(waiting -> waiting > 0 ? TAKEN_OVER : waiting) <= 0) {
                return false;
            }
            woken.complete(null);
            return true;
        }

        /** Whether this thread may wait in native code: one does. */
        synchronized boolean begin() {
            boolean first = !direct;
            direct = true;
            return first;
        }

        /** Whether nobody watches yet for another end of the call. */
        synchronized boolean alone() {
            boolean first = !watching;
            watching = true;
            return first;
        }
    }
}
