package systems.zlink.store.internal;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Copies large payloads into native code, part by part, on a thread of its own: neither the caller nor the answers wait for it. */
final class Payloads {
    private static final ThreadPoolExecutor COPIES = new ThreadPoolExecutor(
            1, 1, 5, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> Threads.daemon("zlink-store-payloads", task));

    static {
        COPIES.allowCoreThreadTimeOut(true);
    }

    private Payloads() {}

    static void copy(Call<?> call, int question, int start, int end) {
        COPIES.execute(() -> {
            try {
                call.segment(question, start, end);
            } catch (RuntimeException | Error failure) {
                // Without its part the put ends; without an answer it would wait for the operation timeout.
                Native.segment(question, null, 0, 0);
                Logs.failed("copying a part of a payload", failure);
            }
        });
    }
}
