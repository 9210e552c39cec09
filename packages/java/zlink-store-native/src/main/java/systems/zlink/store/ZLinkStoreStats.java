package systems.zlink.store;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a store has counted since it was made.
 *
 * @param operations operations begun, by kind ({@code read}, {@code write} …); unmodifiable
 * @param errors failures, by {@link ZLinkStoreFailure#code() code}; codes that never came are left out; unmodifiable
 * @param latencyLog2Micros finished operations by latency: entry {@code i} counts those that took at least 2<sup>i</sup> and less than
 *     2<sup>i+1</sup> microseconds; unmodifiable
 * @param inFlight operations under way
 * @param reconnects connections made again after a loss, by all stores on the same connection
 * @param commandsSent commands sent to the server, by all stores on the same connection
 */
public record ZLinkStoreStats(
        Map<String, Long> operations,
        Map<String, Long> errors,
        List<Long> latencyLog2Micros,
        long inFlight,
        long reconnects,
        long commandsSent) {
    /**
     * Copies what may change.
     *
     * @param operations operations begun, by kind
     * @param errors failures, by code
     * @param latencyLog2Micros finished operations by latency
     * @param inFlight operations under way
     * @param reconnects connections made again
     * @param commandsSent commands sent
     */
    public ZLinkStoreStats {
        operations = Collections.unmodifiableMap(new LinkedHashMap<>(operations));
        errors = Collections.unmodifiableMap(new LinkedHashMap<>(errors));
        latencyLog2Micros = List.copyOf(latencyLog2Micros);
    }
}
