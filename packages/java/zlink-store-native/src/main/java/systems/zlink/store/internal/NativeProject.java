package systems.zlink.store.internal;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;

/** A project of the native library: its state, and what makes its locks. */
public final class NativeProject extends NativeStore {
    private static final int SECOND_NANOS = 1_000_000_000;

    /**
     * Opens a project, without I/O.
     *
     * @param front the project that callers see
     * @param url where the data is
     * @param workspace the workspace
     * @param project the project's name
     * @param operationTimeout the operation timeout
     */
    public NativeProject(Object front, String url, String workspace, String project, Duration operationTimeout) {
        super(front, open(url, workspace, project, operationTimeout));
    }

    private static byte[] open(String url, String workspace, String project, Duration operationTimeout) {
        Packer texts = new Packer(256).text(Arguments.given("url", url));
        texts.text(Arguments.given("workspace", workspace)).text(Arguments.given("project", project));
        long timeoutMs = Durations.millis(Arguments.given("operationTimeout", operationTimeout));
        Library.load();
        return Native.openProject(texts.bytes(), texts.length(), timeoutMs);
    }

    /**
     * Makes the locks of one invocation.
     *
     * @param withinMs when it ends, from now; below 0: nobody knows
     * @return the locks
     */
    public NativeLocks locks(long withinMs) {
        return new NativeLocks(Native.locks(number(), withinMs));
    }

    /**
     * Checks the name of a namespace.
     *
     * @param namespace its name
     */
    public void checkNamespace(String namespace) {
        check(Wire.ASK_STATE_GET, address(Arguments.given("namespace", namespace), "key", 0));
    }

    /**
     * Reads an entry.
     *
     * @param <T> the result
     * @param namespace where
     * @param key under which key
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of an {@link Entry} or {@link Nothing#ABSENT}
     * @return the result
     */
    public <T> CompletionStage<T> get(String namespace, String key, ZLinkStoreCancellation cancellation, Finish<T> finish) {
        return submit(new Call<>(Wire.ASK_STATE_GET, finish), address(namespace, key, 0), cancellation);
    }

    /**
     * Writes an entry.
     *
     * @param <T> the result
     * @param namespace where
     * @param key under which key
     * @param json the value's JSON text
     * @param expectedVersion what is expected there, or {@code null}
     * @param ttl how long it lives, or {@code null}
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of an {@link Entry} or {@link Nothing}
     * @return the result
     */
    public <T> CompletionStage<T> set(
            String namespace,
            String key,
            String json,
            Long expectedVersion,
            Duration ttl,
            ZLinkStoreCancellation cancellation,
            Finish<T> finish) {
        Packer request = address(namespace, key, Arguments.given("value", json).length());
        request.optional(expectedVersion).optional(ttl == null ? null : seconds(ttl)).text(json);
        return submit(new Call<>(Wire.ASK_STATE_SET, finish), request, cancellation);
    }

    /**
     * Deletes an entry.
     *
     * @param <T> the result
     * @param namespace where
     * @param key under which key
     * @param expectedVersion what is expected there, or {@code null}
     * @param cancellation ends it, or {@code null}
     * @param finish makes the result of {@code null} (it is done) or {@link Nothing}
     * @return the result
     */
    public <T> CompletionStage<T> delete(
            String namespace, String key, Long expectedVersion, ZLinkStoreCancellation cancellation, Finish<T> finish) {
        Packer request = address(namespace, key, 0).optional(expectedVersion);
        return submit(new Call<>(Wire.ASK_STATE_DELETE, finish), request, cancellation);
    }

    private static Packer address(String namespace, String key, int further) {
        int units = namespace.length() + Arguments.given("key", key).length() + further;
        return new Packer(32 + 3 * units).text(namespace).text(key);
    }

    /** Whole seconds, parts of one rounded up. */
    private static long seconds(Duration ttl) {
        try {
            return ttl.plusNanos(SECOND_NANOS - 1).getSeconds();
        } catch (ArithmeticException tooLarge) {
            return Long.MAX_VALUE;
        }
    }
}
