package systems.zlink.store.internal;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The operations under way, and the one daemon thread that collects their answers. It lives while stores are open or operations under way,
 * and runs no foreign code.
 */
final class Collector implements Runnable {
    /** Has room for many records, each of which has at most 32 KiB. */
    private static final int ROOM = 256 * 1024;

    /** What a thread that {@linkplain #join() helps} collects into. */
    private static final byte[] HELPERS = new byte[ROOM / 4];

    private static final AtomicBoolean HELPED = new AtomicBoolean();

    private static final Map<Integer, Call<?>> CALLS = new ConcurrentHashMap<>();
    private static final AtomicInteger LAST_TICKET = new AtomicInteger();
    private static final AtomicInteger OPEN_STORES = new AtomicInteger();
    private static final AtomicReference<Collector> RUNNING = new AtomicReference<>();

    private final byte[] batch = new byte[ROOM];

    private Collector() {}

    // ---- on the caller's thread ------------------------------------------------------------------------------------------------

    /** A store that answers {@code inline} hardly needs this thread. */
    static void storeOpened(boolean inline) {
        if (!inline) {
            OPEN_STORES.incrementAndGet();
        }
    }

    static void storeGone(boolean inline) {
        if (!inline && OPEN_STORES.decrementAndGet() == 0) {
            Native.nudge();
        }
    }

    /**
     * Submits one request, for an operation that then runs, or is complete already.
     *
     * @param unwanted what the stage ends with if the arguments are right; {@code null} to start the operation
     * @throws IllegalArgumentException if native code finds an argument outside its limits
     */
    static void submit(Call<?> call, int store, Packer request, Throwable unwanted) {
        int ticket = register(call);
        byte[] record;
        try {
            record = Native.submit(call.asked(), ticket, store, request.bytes(), request.length(), request.beside(), Completions.mayHold());
        } catch (RuntimeException | Error failure) {
            // Native code has not taken it.
            answeredHere(ticket);
            call.arrivedAtOnce(Answers.internal("the native library failed", failure));
            return;
        }
        if (record == null) {
            if (RUNNING.get() == null) {
                start();
            }
            return;
        }
        answeredHere(ticket);
        if (Answers.errorOrNull(record) instanceof IllegalArgumentException error) {
            throw error;
        }
        call.arrivedAtOnce(unwanted == null ? record : unwanted);
    }

    /**
     * Waits on this thread for the answer to one operation, at most {@code timeoutMs}: past the thread that collects, which a lone call
     * then need not wake.
     *
     * @return its record, or {@code null}
     */
    static byte[] await(int ticket, int timeoutMs) {
        byte[] record = Native.await(ticket, timeoutMs);
        if (record != null) {
            answeredHere(ticket);
        }
        return record;
    }

    /** Forgets a call whose answer did not come by way of the thread that collects, which may have stayed for it alone. */
    private static void answeredHere(int ticket) {
        CALLS.remove(ticket);
        if (OPEN_STORES.get() == 0 && RUNNING.get() != null && CALLS.isEmpty()) {
            Native.nudge();
        }
    }

    private static int register(Call<?> call) {
        while (true) {
            int ticket = LAST_TICKET.incrementAndGet();
            call.ticket(ticket);
            if (ticket != 0 && CALLS.putIfAbsent(ticket, call) == null) {
                return ticket;
            }
        }
    }

    private static void start() {
        try {
            Collector next = new Collector();
            Thread thread = Threads.daemon("zlink-store-answers", next);
            if (RUNNING.compareAndSet(null, next)) {
                try {
                    thread.start();
                } catch (Throwable failure) {
                    RUNNING.set(null);
                    throw failure;
                }
            }
        } catch (RuntimeException | Error failure) {
            // Whoever has submitted up to now may have relied on this thread.
            for (Call<?> call : CALLS.values()) {
                Native.cancel(call.ticket());
                CALLS.remove(call.ticket());
                call.arrive(Answers.internal("there is no thread to collect answers", failure));
            }
        }
    }

    // ---- on a thread that settles calls, in between ------------------------------------------------------------------------------

    /** Lets this thread collect answers beside the one that does so all the time, unless another one does already. */
    static boolean join() {
        return HELPED.compareAndSet(false, true);
    }

    /**
     * Lets the answers arrive that are there, or come within {@code patienceUs}. Those that come before the next call of this, or of
     * {@link #leave}, wake nobody.
     *
     * @return whether there were any
     */
    static boolean collectNow(int patienceUs) {
        int length = Native.collectNow(HELPERS, patienceUs);
        for (int start = 0; start < length; start += Unpacker.length(HELPERS, start)) {
            handle(HELPERS, start);
        }
        return length > 0;
    }

    /** Whether operations are under way. */
    static boolean isBusy() {
        return !CALLS.isEmpty();
    }

    static void leave() {
        HELPED.set(false);
        Native.left();
    }

    // ---- on the collecting thread ----------------------------------------------------------------------------------------------

    @Override
    public void run() {
        while (true) {
            int patience = Completions.lookAfter();
            if (patience == 0 && mayEnd()) {
                return;
            }
            int length = collect(patience);
            for (int start = 0; start < length; start += Unpacker.length(batch, start)) {
                handle(batch, start);
            }
            Completions.settleWhatWaits();
        }
    }

    private int collect(int timeoutMs) {
        try {
            return Native.collect(batch, timeoutMs);
        } catch (RuntimeException | Error failure) {
            Logs.failed("collecting answers", failure);
            return 0;
        }
    }

    /** Ends this thread's term unless there is something left to do; whoever submits meanwhile starts another. */
    private boolean mayEnd() {
        if (OPEN_STORES.get() > 0 || !CALLS.isEmpty()) {
            return false;
        }
        RUNNING.set(null);
        return CALLS.isEmpty() || !RUNNING.compareAndSet(null, this);
    }

    private static void handle(byte[] batch, int start) {
        int kind = Unpacker.kind(batch, start);
        int ticket = Unpacker.ticket(batch, start);
        if (kind == Wire.LOG) {
            try {
                Logs.take(new Unpacker(batch, start));
            } catch (RuntimeException | Error failure) {
                // One event less.
            }
        } else if (kind == Wire.SEGMENT) {
            segment(batch, ticket, start);
        } else {
            handOver(batch, ticket, start);
        }
    }

    /** Without memory for this, it is tried again: nobody else would end the stage. */
    private static void handOver(byte[] batch, int ticket, int start) {
        byte[] record = null;
        while (true) {
            try {
                Call<?> call = CALLS.get(ticket);
                if (call != null) {
                    if (record == null) {
                        record = Arrays.copyOfRange(batch, start, start + Unpacker.length(batch, start));
                    }
                    call.arrive(record, true);
                    CALLS.remove(ticket);
                } else if (Unpacker.kind(batch, start) == Wire.LEASE) {
                    // Nobody knows any more what was asked for: it expires.
                    Native.forget(Unpacker.extra(batch, start));
                }
                return;
            } catch (OutOfMemoryError error) {
                Completions.settleWhatWaits();
                Threads.awaitMemory();
            } catch (RuntimeException | Error failure) {
                Logs.failed("handing an answer over", failure);
                return;
            }
        }
    }

    private static void segment(byte[] batch, int ticket, int start) {
        int question = Unpacker.extra(batch, start);
        try {
            Unpacker fields = new Unpacker(batch, start);
            int from = (int) fields.number();
            int to = (int) fields.number();
            Call<?> call = CALLS.get(ticket);
            if (call != null) {
                Payloads.copy(call, question, from, to);
                return;
            }
        } catch (RuntimeException | Error failure) {
            // The put ends without its payload.
        }
        Native.segment(question, null, 0, 0);
    }
}
