package systems.zlink.store.internal;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.time.Instant;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.store.ZLinkStoreStats;

/** What lies behind a store of either kind: a number by which native code knows it. */
public abstract class NativeStore implements AutoCloseable {
    /** Names no store: a request to it is only checked. */
    private static final int NO_STORE = -1;

    private static final Cleaner CLEANER = Cleaner.create();
    /** By the store that callers see, which is what keeps the native one alive. */
    private static final Map<Object, WeakReference<NativeStore>> BEHIND = Collections.synchronizedMap(new WeakHashMap<>());

    private final int number;
    private final Cleaner.Cleanable forgotten;
    private final AtomicReference<Call<Void>> closing = new AtomicReference<>();

    NativeStore(Object front, boolean relocation, Place place) {
        Library.load();
        Packer texts = new Packer(256).text(place.address()).text(place.keyPrefix());
        byte[] record = Native.open(
                relocation, place.kind(), texts.bytes(), texts.length(), Durations.millis(place.operationTimeout()));
        if (Answers.errorOrNull(record) instanceof RuntimeException error) {
            throw error;
        }
        number = Unpacker.extra(record, 0);
        boolean inline = Unpacker.kind(record, 0) == Wire.OPENED_INLINE;
        Collector.storeOpened(inline);
        forgotten = CLEANER.register(this, new Forget(number, inline));
        BEHIND.put(front, new WeakReference<>(this));
    }

    /** What the cleaner does when nobody can use the store any more; it must not know the store. */
    private record Forget(int number, boolean inline) implements Runnable {
        @Override
        public void run() {
            Native.forget(number);
            Collector.storeGone(inline);
        }
    }

    /**
     * The native store behind an official one.
     *
     * @param front the official store
     * @return what lies behind it
     * @throws IllegalArgumentException if it is not an official one
     */
    public static NativeStore behind(Object front) {
        WeakReference<NativeStore> behind = BEHIND.get(Arguments.given("store", front));
        if (behind == null) {
            throw new IllegalArgumentException("store must be one of the official stores, got " + front.getClass().getName());
        }
        return behind.get();
    }

    /**
     * Asks the engine for its clock.
     *
     * @return the clock
     */
    public CompletionStage<Instant> ping() {
        return submit(new Call<>(Wire.ASK_PING), new Packer(0), null);
    }

    /**
     * What the store has counted.
     *
     * @return a snapshot
     */
    public ZLinkStoreStats stats() {
        byte[] record = Native.stats(number);
        if (Answers.errorOrNull(record) instanceof RuntimeException error) {
            throw error;
        }
        return Answers.stats(record);
    }

    /** Fails new operations, and waits for those under way, at most the operation timeout. Again: waits for the first one's end. */
    @Override
    public void close() {
        Call<Void> mine = new Call<>(Wire.ASK_CLOSE);
        Call<Void> first = closing.compareAndExchange(null, mine);
        if (first == null) {
            Collector.submit(mine, number, new Packer(0), null);
        }
        try {
            (first == null ? mine : first).join();
        } catch (CompletionException failure) {
            Logs.failed("closing a store", failure);
        }
        forgotten.clean();
    }

    /** Checks the arguments, asks whether the operation is wanted at all, and starts it. */
    final <T> CompletionStage<T> submit(Call<T> call, Packer request, ZLinkStoreCancellation cancellation) {
        Throwable unwanted = Watches.askFirst(cancellation);
        Collector.submit(call, unwanted == null ? number : NO_STORE, request, unwanted);
        if (cancellation != null && !call.isDone()) {
            Watches.add(cancellation, call);
        }
        return call;
    }
}
