package systems.zlink.store.internal;

import java.lang.ref.WeakReference;
import java.time.Instant;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicReference;
import systems.zlink.store.ZLinkStoreStats;

/** What lies behind a store of any kind, or a project. */
public abstract class NativeStore extends Numbered implements AutoCloseable {
    /** By the store that callers see, which is what keeps the native one alive. */
    private static final Map<Object, WeakReference<NativeStore>> BEHIND = Collections.synchronizedMap(new WeakHashMap<>());

    private final AtomicReference<Call<Void>> closing = new AtomicReference<>();

    NativeStore(Object front, boolean relocation, Place place) {
        this(front, open(relocation, place));
    }

    /** Opens nothing itself: {@code opened} is the record that says what has been opened. */
    NativeStore(Object front, byte[] opened) {
        super(numberOf(opened), forget(opened));
        Collector.storeOpened(isInline(opened));
        BEHIND.put(front, new WeakReference<>(this));
    }

    private static byte[] open(boolean relocation, Place place) {
        Library.load();
        Packer texts = new Packer(256).text(place.address()).text(place.keyPrefix());
        return Native.open(
                relocation, place.kind(), texts.bytes(), texts.length(), Durations.millis(place.operationTimeout()));
    }

    private static boolean isInline(byte[] opened) {
        return Unpacker.kind(opened, 0) == Wire.OPENED_INLINE;
    }

    private static Runnable forget(byte[] opened) {
        int number = numberOf(opened);
        boolean inline = isInline(opened);
        return () -> {
            Native.forget(number);
            Collector.storeGone(inline);
        };
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
    public final CompletionStage<Instant> ping() {
        return submit(new Call<>(Wire.ASK_PING), new Packer(0), null);
    }

    /**
     * What the store has counted.
     *
     * @return a snapshot
     */
    public ZLinkStoreStats stats() {
        byte[] record = Native.stats(number());
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
            Collector.submit(mine, number(), new Packer(0), null);
        }
        try {
            (first == null ? mine : first).join();
        } catch (CompletionException failure) {
            Logs.failed("closing a store", failure);
        }
        forgotten();
    }
}
