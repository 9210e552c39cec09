package systems.zlink.store.tests.conformance;

import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

/**
 * A call that has begun.
 *
 * @param stage what it has given back
 * @param end waits for it, and makes its result
 */
record Begun(CompletableFuture<?> stage, Callable<Map<String, Object>> end) {
    /** A call, which begins when this is called. */
    interface Calling {
        Begun begin() throws Exception;
    }

    static Begun over(Map<String, Object> result) {
        return new Begun(CompletableFuture.completedFuture(null), () -> result);
    }
}
