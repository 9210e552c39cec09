package systems.zlink.store.internal;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/**
 * Asks the cancellations of operations under way, again and again.
 *
 * <p>A cancellation is foreign code: it may throw, which ends its own operations, and it may block, which holds up nobody else. One thread
 * keeps the time and runs no foreign code; another one asks. When that one is still asking at the next tick, a further one takes the rest.
 */
final class Watches {
    /** Well under the 100 ms within which a cancellation is to be noticed. */
    private static final int PERIOD_MS = 25;

    private static final int IDLE_MS = 1_000;

    /** Guards {@link #WATCHES}, {@link #ticking} and what is in each watch. */
    private static final Object LOCK = new Object();

    private static final Map<ZLinkStoreCancellation, Watch> WATCHES = new IdentityHashMap<>();
    private static boolean ticking;

    /** The watches that are still to be asked in this round. */
    private static final Queue<Watch> ROUND = new ConcurrentLinkedQueue<>();

    private static final ThreadPoolExecutor ASKERS = new ThreadPoolExecutor(
            0, 64, IDLE_MS, TimeUnit.MILLISECONDS, new SynchronousQueue<>(), task -> Threads.daemon("zlink-store-cancellations", task));

    private Watches() {}

    /** One cancellation, with the operations that it may end. */
    private static final class Watch {
        final ZLinkStoreCancellation cancellation;
        final List<Call<?>> calls = new ArrayList<>();
        boolean inRound;

        Watch(ZLinkStoreCancellation cancellation) {
            this.cancellation = cancellation;
        }

        List<Call<?>> waiting() {
            synchronized (LOCK) {
                return List.copyOf(calls);
            }
        }
    }

    /** Why an operation is not to be started; {@code null} if it is. */
    static Throwable askFirst(ZLinkStoreCancellation cancellation) {
        try {
            return cancellation != null && cancellation.isCancellationRequested() ? cancelled() : null;
        } catch (Throwable thrown) {
            return thrown;
        }
    }

    /** Asks {@code cancellation} until {@code call} is done. */
    static void add(ZLinkStoreCancellation cancellation, Call<?> call) {
        synchronized (LOCK) {
            WATCHES.computeIfAbsent(cancellation, Watch::new).calls.add(call);
            if (!ticking) {
                Threads.daemon("zlink-store-ticks", Watches::tick).start();
                ticking = true;
            }
        }
    }

    private static void tick() {
        int idle = 0;
        while (true) {
            try {
                Thread.sleep(PERIOD_MS);
                synchronized (LOCK) {
                    idle = WATCHES.isEmpty() ? idle + PERIOD_MS : 0;
                    if (idle >= IDLE_MS) {
                        ticking = false;
                        return;
                    }
                    if (ROUND.isEmpty()) {
                        beginRound();
                    }
                }
                if (!ROUND.isEmpty()) {
                    ASKERS.execute(Watches::ask);
                }
            } catch (InterruptedException | RejectedExecutionException | OutOfMemoryError nobodysBusinessOrAllBlockedOrNoMemory) {
                // At the next tick, perhaps.
            }
        }
    }

    private static void beginRound() {
        WATCHES.values().removeIf(watch -> {
            watch.calls.removeIf(Call::isDone);
            return watch.calls.isEmpty();
        });
        for (Watch watch : WATCHES.values()) {
            if (!watch.inRound) {
                ROUND.add(watch);
                watch.inRound = true;
            }
        }
    }

    private static void ask() {
        for (Watch watch = ROUND.poll(); watch != null; watch = ROUND.poll()) {
            try {
                Throwable end = askFirst(watch.cancellation);
                if (end != null) {
                    watch.waiting().forEach(call -> call.end(end));
                }
            } finally {
                synchronized (LOCK) {
                    watch.inRound = false;
                }
            }
        }
    }

    private static CancellationException cancelled() {
        return new CancellationException("the operation was cancelled");
    }
}
