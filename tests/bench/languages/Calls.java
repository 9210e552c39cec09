// Java (bench.mjs).

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;
import systems.zlink.framework.locations.redis.*;

public class Calls {
    static final List<ZLinkStoreKey> KEYS = IntStream.range(0, 1_000).mapToObj(at -> new ZLinkStoreKey("k" + at)).toList();
    static final byte[] VALUE = new byte[256];
    static final byte[] BLOB = new byte[64 * 1024 * 1024];
    static final Duration HOUR = Duration.ofHours(1);
    static final ZLinkBlobReference THERE = new ZLinkBlobReference("there");
    static final ZLinkBlobReference FRESH = new ZLinkBlobReference("fresh");

    record Stores(ZLinkLocationStore records, ZLinkRelocationStore blobs) {
        CompletionStage<?> work(String what, int at) {
            return switch (what) {
                case "read" -> records.read(KEYS.get(at), null);
                case "put" -> records.write(new ZLinkStoreWriteRequest(List.of(), List.of(put(KEYS.get(at)))), null);
                case "blob-read" -> blobs.read(THERE, null);
                // A put of bytes that are there would move none of them.
                case "blob-put" -> blobs.delete(FRESH, null).thenCompose(nothing -> blobs.put(FRESH, BLOB, HOUR, null));
                default -> throw new IllegalArgumentException(what);
            };
        }
    }

    static ZLinkStoreMutation put(ZLinkStoreKey key) {
        return new ZLinkStorePut(key, VALUE, null);
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        String prefix = arguments[1];
        Duration minute = Duration.ofMinutes(1);
        Map<String, Stores> engines = Map.of(
                "redis", new Stores(
                        new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                                .setConnectionString(url).setKeyPrefix(prefix).setOperationTimeout(minute)),
                        new ZLinkRedisRelocationStore(new ZLinkRedisRelocationOptions()
                                .setConnectionString(url).setKeyPrefix(prefix).setOperationTimeout(minute))),
                "memory", new Stores(
                        new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions()),
                        new ZLinkEmbeddedRelocationStore(new ZLinkEmbeddedRelocationOptions())));
        for (Stores stores : engines.values()) {
            List<ZLinkStoreMutation> puts = new ArrayList<>();
            KEYS.forEach(key -> puts.add(put(key)));
            stores.records.write(new ZLinkStoreWriteRequest(List.of(), puts), null).toCompletableFuture().join();
            stores.blobs.put(THERE, BLOB, HOUR, null).toCompletableFuture().join();
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split(" ");
            System.out.println(measure(asked[0], engines.get(asked[1]), Integer.parseInt(asked[2]), Double.parseDouble(asked[3])));
        }
    }

    static double measure(String what, Stores stores, int inFlight, double seconds) throws InterruptedException {
        AtomicLong done = new AtomicLong();
        Semaphore room = new Semaphore(inFlight);
        long began = System.nanoTime();
        long end = began + (long) (seconds * 1e9);
        for (int at = 0; System.nanoTime() < end; at++) {
            room.acquire();
            stores.work(what, at % KEYS.size()).whenComplete((result, failure) -> {
                if (failure == null) {
                    done.incrementAndGet();
                }
                room.release();
            });
        }
        room.acquire(inFlight);
        return done.get() / ((System.nanoTime() - began) / 1e9);
    }
}
