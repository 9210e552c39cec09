package systems.zlink.store.internal;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Completes stages, and so runs their continuations, away from the thread that collects answers.
 *
 * <p>A task settles one call after the other; before each, a further task is on its way for those behind it, so that a continuation that
 * blocks holds up no other one as long as there are threads. The common pool may have a single thread, and lets only so many of them block:
 * when it does not come round to a completion for a while, or many continuations are at work there, threads of our own step in.
 */
public final class Completions {
    /** How long a completion may wait for the common pool before one of our threads takes it. */
    static final int PATIENCE_MS = 25;

    /** How many continuations may be at work in the common pool, which gives up after 256 that wait. */
    private static final int MOST_IN_COMMON_POOL = 32;

    /** Made beforehand: when it is needed there may be no memory. */
    private static final Runnable HELP = Completions::help;

    /** How many one task settles. */
    private static final int MOST_AT_A_TIME = 1_024;

    private static final Queue<Call<?>> WAITING = new ConcurrentLinkedQueue<>();
    /** Whether a task that settles what waits has been submitted and has not begun. */
    private static final AtomicBoolean HELP_COMES = new AtomicBoolean();

    /** How long what a continuation has submitted is held back for what the next ones submit, if one of them blocks. */
    private static final int HELD_MS = 1;

    /** How long a thread that settles calls waits for the next answers while operations are under way. */
    private static final int NEXT_ANSWERS_US = 300;

    /** After so many looks at tasks that do not come to an end they are taken to be blocked. */
    private static final int LOOKS = 20;

    private static final AtomicInteger AT_WORK = new AtomicInteger();

    /** Tasks that settle one call after the other, and hold back what the continuations submit. */
    private static final AtomicInteger SETTLING = new AtomicInteger();
    /** Whether this thread runs one. Of the class library's own types: a pool's thread outlives our class loader. */
    private static final ThreadLocal<Boolean> SETTLES = new ThreadLocal<>();
    /** Whether the collecting thread looks after what is held. */
    private static volatile boolean watched;
    /** Completions begun. Unchanged beside a queue that is not empty, it tells that nobody comes round. */
    private static final AtomicLong BEGUN = new AtomicLong();

    private static final ThreadPoolExecutor OURS = new ThreadPoolExecutor(
            0, 4_096, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> Threads.daemon("zlink-store-completions", task));

    private static volatile Executor chosen;

    /** Known to the collecting thread alone. */
    private static long begunBefore = -1;

    private static long lookedAt;
    private static long begunHeldAt;

    private Completions() {}

    /**
     * Sets the executor.
     *
     * @param executor {@code null} for the default
     */
    public static void setExecutor(Executor executor) {
        chosen = executor;
    }

    /** Has a call settled; when {@code othersFollow}, at the latest at {@link #settleWhatWaits}. */
    static void settleSoon(Call<?> call, boolean othersFollow) {
        Executor executor = chosen;
        if (executor != null) {
            try {
                executor.execute(call::settle);
                return;
            } catch (RuntimeException | Error refused) {
                // The stage must be completed all the same.
            }
        }
        WAITING.add(call);
        if (!othersFollow) {
            callHelp();
        }
    }

    /** Has everything settled that waits. */
    static void settleWhatWaits() {
        if (!WAITING.isEmpty()) {
            callHelp();
        }
    }

    /** Sees to it that a task which settles what waits is on its way. */
    private static void callHelp() {
        if (HELP_COMES.compareAndSet(false, true) && !runByDefault(HELP)) {
            HELP_COMES.set(false);
        }
    }

    /** Settles what waits. While a continuation is at work, the next helper is on its way for those behind it. */
    private static void help() {
        HELP_COMES.set(false);
        SETTLING.incrementAndGet();
        boolean collects = false;
        try {
            SETTLES.set(true);
            int left = MOST_AT_A_TIME;
            do {
                for (Call<?> call = WAITING.poll(); call != null; call = --left > 0 ? WAITING.poll() : null) {
                    if (!WAITING.isEmpty()) {
                        callHelp();
                    }
                    settle(call);
                }
                Native.goOn();
                collects = collects || watched && Collector.join();
            } while (left > 0 && collects && Collector.collectNow(patience()));
        } finally {
            SETTLES.remove();
            Native.goOn();
            if (collects) {
                Collector.leave();
            }
            SETTLING.decrementAndGet();
        }
        // The pool has other tasks, too.
        settleWhatWaits();
    }

    /** How many microseconds this thread may wait for the next answers, in which case nobody else need be woken for them. */
    private static int patience() {
        boolean othersWait = Thread.currentThread() instanceof ForkJoinWorkerThread worker && worker.getPool().hasQueuedSubmissions();
        return othersWait || !Collector.isBusy() ? 0 : NEXT_ANSWERS_US;
    }

    /** Called before this thread waits for an answer: it may have held back what the answer depends on. */
    static void beforeWaiting() {
        if (SETTLES.get() != null) {
            Native.goOn();
        }
    }

    /**
     * Whether what this thread submits may be held back: it settles one call after the other, has further ones before it, and begins then
     * what they have submitted together.
     */
    static boolean mayHold() {
        return watched && !WAITING.isEmpty() && SETTLES.get() != null;
    }

    /** Runs something else that may be foreign code. */
    static void runSoon(Runnable task) {
        Executor executor = chosen;
        if (executor != null) {
            try {
                executor.execute(task);
                return;
            } catch (RuntimeException | Error refused) {
                // The default is left.
            }
        }
        runByDefault(task);
    }

    private static boolean runByDefault(Runnable task) {
        try {
            (AT_WORK.get() < MOST_IN_COMMON_POOL ? ForkJoinPool.commonPool() : OURS).execute(task);
            return true;
        } catch (RuntimeException | Error noThread) {
            // What waits for completion is not lost: the collecting thread looks after it.
            return false;
        }
    }

    private static void settle(Call<?> call) {
        BEGUN.incrementAndGet();
        AT_WORK.incrementAndGet();
        try {
            call.settle();
        } finally {
            AT_WORK.decrementAndGet();
        }
    }

    /**
     * Called by the collecting thread between batches, and again after the time that this says, if it says one.
     *
     * @return for how many milliseconds it may wait at most; 0: for ever
     */
    static int lookAfter() {
        boolean waiting = !WAITING.isEmpty();
        // First this, then the look at who settles: one who is not seen does not see itself watched.
        watched = false;
        if (!waiting && SETTLING.get() == 0) {
            begunBefore = -1;
            return 0;
        }
        long begun = BEGUN.get();
        long now = System.nanoTime();
        if (now - begunHeldAt >= HELD_MS * 1_000_000L) {
            begunHeldAt = now;
            Native.goOn();
        }
        if (begun != begunBefore) {
            begunBefore = begun;
            lookedAt = now;
        } else if (now - lookedAt >= PATIENCE_MS * 1_000_000L) {
            lookedAt = now;
            if (waiting) {
                try {
                    OURS.execute(HELP);
                } catch (RuntimeException | Error noThread) {
                    // Perhaps there is one the next time.
                }
            }
        }
        watched = now - lookedAt < LOOKS * 1_000_000L;
        return watched ? HELD_MS : PATIENCE_MS;
    }
}
