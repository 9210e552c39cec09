package systems.zlink.store.internal;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
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
    private static final int MOST_AT_A_TIME = 64;

    private static final Queue<Call<?>> WAITING = new ConcurrentLinkedQueue<>();
    /** Whether a task that settles what waits has been submitted and has not begun. */
    private static final AtomicBoolean HELP_COMES = new AtomicBoolean();

    private static final AtomicInteger AT_WORK = new AtomicInteger();
    /** Completions begun. Unchanged beside a queue that is not empty, it tells that nobody comes round. */
    private static final AtomicLong BEGUN = new AtomicLong();

    private static final ThreadPoolExecutor OURS = new ThreadPoolExecutor(
            0, 4_096, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), task -> Threads.daemon("zlink-store-completions", task));

    private static volatile Executor chosen;

    /** Known to the collecting thread alone. */
    private static long begunBefore = -1;

    private static long lookedAt;

    private Completions() {}

    /**
     * Sets the executor.
     *
     * @param executor {@code null} for the default
     */
    public static void setExecutor(Executor executor) {
        chosen = executor;
    }

    static void settleSoon(Call<?> call) {
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
        callHelp();
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
        for (int settled = 0; settled < MOST_AT_A_TIME; settled++) {
            Call<?> call = WAITING.poll();
            if (call == null) {
                return;
            }
            if (!WAITING.isEmpty()) {
                callHelp();
            }
            settle(call);
        }
        // The pool has other tasks, too.
        if (!WAITING.isEmpty()) {
            callHelp();
        }
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
     * Called by the collecting thread between batches, and after {@link #PATIENCE_MS} without one if this says so.
     *
     * @return whether completions wait, so that it should look again soon
     */
    static boolean lookAfter() {
        if (WAITING.isEmpty()) {
            begunBefore = -1;
            return false;
        }
        long begun = BEGUN.get();
        long now = System.nanoTime();
        if (begun != begunBefore) {
            begunBefore = begun;
            lookedAt = now;
        } else if (now - lookedAt >= PATIENCE_MS * 1_000_000L) {
            lookedAt = now;
            try {
                OURS.execute(HELP);
            } catch (RuntimeException | Error noThread) {
                // Perhaps there is one the next time.
            }
        }
        return true;
    }
}
