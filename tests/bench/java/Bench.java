// Java on Redis against what people would write by hand, all sides in turn, in one run on one Redis; `../report.mjs` makes the table.
// Arguments: the rows wanted, of those in ROWS; none for all.

import glide.api.GlideClient;
import glide.api.models.GlideString;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import io.lettuce.core.RedisClient;
import io.lettuce.core.SetArgs;
import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import java.net.URI;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.project.state.*;

public class Bench {
    static final List<String> ROWS = List.of("read", "write", "blob", "lock", "scan");
    static final int KEYS = 10_000;
    static final int RECORDS = 100_000;
    static final Duration MINUTE = Duration.ofMinutes(1);
    /** How much a round puts at most: what is measured is not how memory fills. */
    static final int MOST_MIB = 768;

    /** Every row begins with an empty server. */
    private final String url;
    private final RedisAsyncCommands<String, byte[]> lettuce;
    private final GlideClient glide;
    private final Measuring measuring;
    private final Results results;
    private final byte[] value = new byte[256];

    Bench(String url, RedisAsyncCommands<String, byte[]> lettuce, GlideClient glide, Results results) {
        this.url = url;
        this.lettuce = lettuce;
        this.glide = glide;
        this.measuring = new Measuring(lettuce);
        this.results = results;
        Arrays.fill(value, (byte) 'v');
    }

    public static void main(String[] arguments) throws Exception {
        List<String> wanted = arguments.length == 0 ? ROWS : List.of(arguments);
        if (!ROWS.containsAll(wanted)) {
            System.err.println("no such row in " + wanted + "; there are: " + ROWS);
            System.exit(2);
        }
        boolean good;
        try (var server = new Measuring.Server()) {
            RedisClient client = RedisClient.create(server.url);
            RedisAsyncCommands<String, byte[]> lettuce = client.connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE)).async();
            URI address = URI.create(server.url);
            GlideClient glide = GlideClient.createClient(GlideClientConfiguration.builder()
                    .address(NodeAddress.builder().host(address.getHost()).port(address.getPort()).build())
                    .requestTimeout((int) MINUTE.toMillis())
                    .inflightRequestsLimit(10_000)
                    .build()).get();
            Results results = new Results(List.of(
                    String.format("Java %s with a heap of 1 GiB, Redis %s without persistence on loopback, %d rounds of %d ms",
                            Runtime.version(), Measuring.info(lettuce, "server", "redis_version"), Measuring.ROUNDS, Measuring.ROUND_MS),
                    "Lettuce 7.7.0: one connection, async, automatic flush; valkey-glide 2.3.1: one client, 10,000 in flight allowed; "
                            + "Redisson 4.7.0: defaults"));
            Bench bench = new Bench(server.url, lettuce, glide, results);
            for (String row : ROWS) {
                if (wanted.contains(row)) {
                    bench.measure(row);
                    lettuce.flushall().get();
                }
            }
            client.shutdown();
            glide.close();
            good = results.write();
        }
        System.exit(good ? 0 : 1);
    }

    /** One row that fails leaves the others. */
    private void measure(String row) {
        try {
            switch (row) {
                case "read" -> read();
                case "write" -> write();
                case "blob" -> blob();
                case "lock" -> lock();
                default -> scan();
            }
        } catch (Exception failure) {
            results.failed(row, failure);
        }
    }

    private ZLinkRedisLocationStore locations() {
        return new ZLinkRedisLocationStore(
                new ZLinkRedisLocationOptions().setConnectionString(url).setKeyPrefix("bench").setOperationTimeout(MINUTE));
    }

    static String name(int index) {
        return String.format("actor/%024d", index);
    }

    static String plain(int index) {
        return "plain:" + name(index);
    }

    /** Names that are there already, so that no side pays for making them. */
    static final String[] NAMES = new String[KEYS];
    static final String[] PLAIN = new String[KEYS];

    static {
        for (int index = 0; index < KEYS; index++) {
            NAMES[index] = name(index);
            PLAIN[index] = plain(index);
        }
    }

    static int pick() {
        return ThreadLocalRandom.current().nextInt(KEYS);
    }

    private void fill(ZLinkLocationStore store, int count) throws Exception {
        for (int from = 0; from < count; from += 1_000) {
            List<ZLinkStoreMutation> puts = new ArrayList<>();
            for (int index = from; index < from + 1_000; index++) {
                puts.add(new ZLinkStorePut(new ZLinkStoreKey(name(index)), value, null));
                lettuce.set(plain(index), value);
            }
            store.write(new ZLinkStoreWriteRequest(List.of(), puts), null).toCompletableFuture().get();
        }
        lettuce.ping().get();
    }

    private void read() throws Exception {
        try (var locations = locations()) {
            fill(locations, KEYS);
            for (int inFlight : new int[] {1, 64, 1_024}) {
                var sides = measuring.row(inFlight,
                        Measuring.Work.of(lane -> locations.read(new ZLinkStoreKey(NAMES[pick()]), null)),
                        Measuring.Work.of(lane -> lettuce.get(PLAIN[pick()])),
                        Measuring.Work.of(lane -> glide.get(GlideString.of(PLAIN[pick()]))));
                boolean other = inFlight > 1 && sides.get(2).speed() > sides.get(1).speed();
                System.out.printf("   %d in flight: Lettuce %,.0f ops/s, valkey-glide %,.0f ops/s%n",
                        inFlight, sides.get(1).speed(), sides.get(2).speed());
                results.speed("java/read/" + inFlight, sides.get(0), sides.get(other ? 2 : 1), 1, other ? "valkey-glide GET" : "Lettuce GET");
            }
        }
    }

    private void write() throws Exception {
        try (var locations = locations()) {
            fill(locations, KEYS);
            var set = Measuring.Work.of(lane -> lettuce.set(PLAIN[pick()], value));
            var puts = measuring.row(64,
                    Measuring.Work.of(lane -> locations.write(new ZLinkStoreWriteRequest(
                            List.of(), List.of(new ZLinkStorePut(new ZLinkStoreKey(NAMES[pick()]), value, null))), null)),
                    set);
            results.speed("java/put/64", puts.get(0), puts.get(1), 1, null);
            ZLinkStoreVersion[] versions = new ZLinkStoreVersion[64];
            var cas = measuring.row(64,
                    Measuring.Work.of(lane -> {
                        ZLinkStoreKey key = new ZLinkStoreKey("cas/" + lane);
                        ZLinkStoreCondition condition = versions[lane] == null
                                ? new ZLinkStoreMissingCondition(key)
                                : new ZLinkStoreVersionCondition(key, versions[lane]);
                        return locations.write(new ZLinkStoreWriteRequest(List.of(condition), List.of(new ZLinkStorePut(key, value, null))), null)
                                .thenAccept(result -> versions[lane] = ((ZLinkStoreWriteApplied) result).putVersions().get(key));
                    }),
                    set);
            results.speed("java/cas/64", cas.get(0), cas.get(1), 1, null);
        }
    }

    private void blob() throws Exception {
        try (var blobs = new ZLinkRedisRelocationStore(
                new ZLinkRedisRelocationOptions().setConnectionString(url).setKeyPrefix("bench-blobs").setOperationTimeout(MINUTE))) {
            for (int mib : new int[] {1, 64}) {
                byte[] payload = new byte[mib << 20];
                AtomicLong next = new AtomicLong();
                Queue<ZLinkBlobReference> there = new ConcurrentLinkedQueue<>();
                var putting = new Measuring.Work(lane -> {
                    ByteBuffer.wrap(payload).putLong(0, next.incrementAndGet());
                    ZLinkBlobReference reference = new ZLinkBlobReference("blob/" + mib + "/" + next.get());
                    there.add(reference);
                    return blobs.put(reference, payload, MINUTE, null);
                }, () -> {
                    for (ZLinkBlobReference reference; (reference = there.poll()) != null; ) {
                        blobs.delete(reference, null).toCompletableFuture().join();
                    }
                });
                // New strings, as the blobs are new: what replaces another finds the server's memory warm.
                AtomicLong plain = new AtomicLong();
                var setting = new Measuring.Work(
                        lane -> lettuce.set("plain:blob:" + plain.getAndIncrement(), payload, SetArgs.Builder.px(MINUTE.toMillis())),
                        () -> {
                            while (plain.get() > 0) {
                                lettuce.del("plain:blob:" + plain.decrementAndGet()).toCompletableFuture().join();
                            }
                        });
                var puts = measuring.row(1, MOST_MIB / mib, putting, setting);
                results.speed("java/blob/put/" + mib, puts.get(0), puts.get(1), mib, null);
                ZLinkBlobReference kept = new ZLinkBlobReference("kept/" + mib);
                blobs.put(kept, payload, Duration.ofHours(1), null).toCompletableFuture().get();
                lettuce.set("plain:blob", payload).get();
                var gets = measuring.row(1,
                        Measuring.Work.of(lane -> blobs.read(kept, null)),
                        Measuring.Work.of(lane -> lettuce.get("plain:blob")));
                results.speed("java/blob/read/" + mib, gets.get(0), gets.get(1), mib, null);
            }
        }
    }

    private void lock() throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        RedissonClient redisson = Redisson.create(config);
        try (var project = new Project(new ProjectOptions(url, "bench", "java").withOperationTimeout(MINUTE))) {
            // An invocation has 16 leases at most: each lane is one.
            List<DistributedLocks> invocations = new ArrayList<>();
            List<RLock> locks = new ArrayList<>();
            for (int lane = 0; lane < 64; lane++) {
                invocations.add(project.locks());
                locks.add(redisson.getLock("redisson:" + lane));
            }
            LockOptions options = LockOptions.defaults().withLeaseTime(Duration.ofSeconds(30));
            for (int inFlight : new int[] {1, 64}) {
                var sides = measuring.row(inFlight,
                        Measuring.Work.of(lane ->
                                invocations.get(lane).acquire("lock/" + lane, options).thenCompose(lease -> lease.orElseThrow().release())),
                        Measuring.Work.of(lane -> locks.get(lane).tryLockAsync(0, 30_000, TimeUnit.MILLISECONDS, lane + 1).thenCompose(got -> {
                            if (!got) {
                                throw new IllegalStateException("a lock of one lane is held");
                            }
                            return locks.get(lane).unlockAsync(lane + 1);
                        })));
                results.speed("java/lock/" + inFlight, sides.get(0), sides.get(1), 1, null);
            }
        } finally {
            redisson.shutdown();
        }
    }

    private void scan() throws Exception {
        try (var store = locations()) {
            fill(store, RECORDS);
            List<Double> ours = new ArrayList<>();
            List<Double> theirs = new ArrayList<>();
            for (int round = 0; round <= Measuring.ROUNDS; round++) {
                double scanned = RECORDS / seconds(() -> pages(store));
                double got = RECORDS / seconds(this::mget);
                // The first round warms up.
                if (round > 0) {
                    ours.add(scanned);
                    theirs.add(got);
                }
            }
            results.figures("java/scan", ours, theirs);
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    private static double seconds(Step step) throws Exception {
        long began = System.nanoTime();
        step.run();
        return (System.nanoTime() - began) / 1e9;
    }

    private static void pages(ZLinkLocationStore store) throws Exception {
        ZLinkStoreScanCursor cursor = null;
        int seen = 0;
        do {
            var page = (ZLinkStoreScanPageResult) store.scan(new ZLinkStoreScanRequest("", cursor, 1_000), null).toCompletableFuture().get();
            seen += page.value().items().size();
            cursor = page.value().nextCursor();
        } while (cursor != null);
        if (seen != RECORDS) {
            throw new IllegalStateException("the scan gave " + seen + " of " + RECORDS + " records");
        }
    }

    private void mget() throws Exception {
        for (int from = 0; from < RECORDS; from += 1_000) {
            String[] keys = new String[1_000];
            for (int index = 0; index < keys.length; index++) {
                keys[index] = plain(from + index);
            }
            lettuce.mget(keys).get();
        }
    }
}
