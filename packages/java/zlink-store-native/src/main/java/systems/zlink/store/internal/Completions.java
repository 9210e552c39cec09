package systems.zlink.store.internal;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Completes stages, and so runs their continuations, away from the thread that collects answers.
 *
 * <p>Each completion is a task of its own, so that a continuation that blocks holds up no other one as long as there are threads. The
 * common pool may have a single thread: when it does not come round to a completion for a while, a thread of our own steps in.
 */
public final class Completions {
    /** How long a completion may wait for the default executor before a helper is started. */
    static final int PATIENCE_MS = 25;

    private static final int MOST_HELPERS = 64;

    private static final Queue<Call<?>> WAITING = new ConcurrentLinkedQueue<>();
    /** Completions begun. Together with an unchanged queue that is not empty it tells that nobody comes round. */
    private static final AtomicLong BEGUN = new AtomicLong();
    private static final AtomicInteger HELPERS = new AtomicInteger();

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
        try {
            ForkJoinPool.commonPool().execute(Completions::settleOne);
        } catch (RuntimeException | Error refused) {
            startHelper();
        }
    }

    /** Runs something else that may be foreign code. */
    static void runSoon(Runnable task) {
        Executor executor = chosen;
        try {
            (executor == null ? ForkJoinPool.commonPool() : executor).execute(task);
        } catch (RuntimeException | Error refused) {
            Threads.daemon("zlink-store-completions", task).start();
        }
    }

    private static boolean settleOne() {
        Call<?> call = WAITING.poll();
        if (call == null) {
            return false;
        }
        BEGUN.incrementAndGet();
        call.settle();
        return true;
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
            startHelper();
        }
        return true;
    }

    private static void startHelper() {
        if (HELPERS.incrementAndGet() > MOST_HELPERS) {
            HELPERS.decrementAndGet();
            return;
        }
        Threads.daemon("zlink-store-completions", Completions::help).start();
    }

    private static void help() {
        try {
            while (settleOne()) {
                // The next one.
            }
        } finally {
            HELPERS.decrementAndGet();
        }
    }
}
