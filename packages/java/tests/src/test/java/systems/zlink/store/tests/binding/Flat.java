package systems.zlink.store.tests.binding;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.store.tests.support.Stores;

/** Works for long, and then tells by how much heap, native memory and threads have grown. */
final class Flat {
    private static final int IN_FLIGHT = 200;
    private static final int ROUNDS = 4;
    /** What one round may grow by: two bytes for each of a million operations. */
    private static final long BOUND = 2 * 1024 * 1024;
    /** What all of them may: beside other work more is under way at some moments, and the allocator keeps what that took. */
    private static final long BOUND_OF_ALL = 32 * 1024 * 1024;

    private Flat() {}

    public static void main(String... arguments) throws Exception {
        String url = arguments[0];
        int operations = Integer.parseInt(arguments[1]);
        int rounds = Integer.parseInt(arguments[2]);
        work(url, operations, rounds);
        // The allocator keeps what it once needed, and a round may still need more than those before. A leak grows in every round: one in
        // which nothing grows, among a few, shows that there is none.
        State first = State.now();
        State before;
        State after = first;
        int left = ROUNDS;
        do {
            before = after;
            work(url, operations, rounds);
            after = State.now();
            System.out.println("heap " + (after.heap - before.heap) / 1024 + " KiB, resident " + (after.resident - before.resident) / 1024
                    + " KiB, threads " + (after.threads - before.threads));
        } while (--left > 0 && !after.isFlatSince(before, BOUND));
        System.out.println(after.isFlatSince(before, BOUND) && after.isFlatSince(first, BOUND_OF_ALL) ? "flat" : "not flat");
    }

    private static void work(String url, int operations, int rounds) throws Exception {
        try (var redis = Stores.redis(url, Duration.ofSeconds(30));
                var blobs = Stores.redisBlobs(url, Duration.ofSeconds(30));
                var memory = Stores.inMemory()) {
            Stores.await(redis.write(Stores.put("k", new byte[256]), null));
            Stores.await(memory.write(Stores.put("k", new byte[256]), null));
            Stores.await(redis.write(Stores.put("large", new byte[100_000]), null));
            Stores.await(blobs.put(Stores.reference("blob"), new byte[600_000], Duration.ofHours(1), null));
            List<CompletableFuture<?>> batch = new ArrayList<>();
            for (int index = 0; index < operations; index++) {
                batch.add(one(index, redis, blobs, memory).toCompletableFuture());
                if (batch.size() == IN_FLIGHT) {
                    for (CompletableFuture<?> one : batch) {
                        Stores.end(one);
                    }
                    batch.clear();
                }
            }
        }
        for (int round = 0; round < rounds; round++) {
            try (var redis = Stores.redis(url, Duration.ofSeconds(30)); var memory = Stores.inMemory()) {
                Stores.await(redis.read(Stores.key("k"), () -> false));
                Stores.await(memory.read(Stores.key("k"), null));
            }
        }
    }

    private static java.util.concurrent.CompletionStage<?> one(
            int index, ZLinkLocationStore redis, ZLinkRelocationStore blobs, ZLinkLocationStore memory) {
        return switch (index % 1_000) {
            case 0 -> redis.read(Stores.key("large"), null);
            case 1 -> blobs.read(Stores.reference("blob"), null);
            case 2 -> blobs.put(Stores.reference("blob"), new byte[600_000], Duration.ofHours(1), null);
            case 3 -> {
                CompletableFuture<?> cancelled = blobs.put(Stores.reference("blob"), new byte[600_000], Duration.ofHours(1), null)
                        .toCompletableFuture();
                cancelled.cancel(true);
                yield cancelled;
            }
            case 4 -> redis.scan(new ZLinkStoreScanRequest("", null, 10), null);
            case 5, 6, 7, 8, 9 -> {
                CompletableFuture<?> cancelled = redis.read(Stores.key("large"), null).toCompletableFuture();
                cancelled.cancel(true);
                yield cancelled;
            }
            case 10 -> redis.write(Stores.put("k", new byte[256]), () -> false);
            default -> (index & 1) == 0 ? redis.read(Stores.key("k"), null) : memory.read(Stores.key("k"), null);
        };
    }

    private record State(long heap, long resident, int threads) {
        boolean isFlatSince(State before, long bound) {
            return heap - before.heap <= bound && resident - before.resident <= bound && threads <= before.threads;
        }

        static State now() throws IOException, InterruptedException {
            for (int round = 0; round < 5; round++) {
                System.gc();
                Thread.sleep(300);
            }
            long pages = Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]);
            return new State(
                    ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
                    pages * 4_096,
                    ManagementFactory.getThreadMXBean().getThreadCount());
        }
    }
}
