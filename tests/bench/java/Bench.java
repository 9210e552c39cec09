// Java on Redis against what people would write by hand, all sides in turn, in one run on one Redis; medians of the rounds.
// Arguments: the rows wanted, of read, write, blob, scan, lock; none for all.

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
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntFunction;
import java.util.function.ToDoubleFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.project.state.*;

public class Bench {
    static final int ROUNDS = Integer.parseInt(System.getenv().getOrDefault("BENCH_ROUNDS", "3"));
    static final long ROUND_MS = Long.parseLong(System.getenv().getOrDefault("BENCH_ROUND_MS", "2000"));
    static final int KEYS = 10_000;
    static final int RECORDS = 100_000;
    static final Duration MINUTE = Duration.ofMinutes(1);
    static final List<String> TABLE = new ArrayList<>();

    /** Reads one number out of what Redis tells about itself. */
    static double info(RedisAsyncCommands<String, byte[]> redis, String section, String name) throws Exception {
        Matcher found = Pattern.compile("(?m)^" + name + ":([\\d.]+)").matcher(redis.info(section).get());
        if (!found.find()) {
            throw new IllegalStateException(name);
        }
        return Double.parseDouble(found.group(1));
    }

    static double serverCpu(RedisAsyncCommands<String, byte[]> redis) throws Exception {
        return info(redis, "cpu", "used_cpu_sys") + info(redis, "cpu", "used_cpu_user");
    }

    static String name(int index) {
        return String.format("actor/%024d", index);
    }

    static final String[] NAMES = new String[KEYS];
    static final String[] PLAIN = new String[KEYS];

    static int pick() {
        return ThreadLocalRandom.current().nextInt(KEYS);
    }

    // ---- measuring ---------------------------------------------------------------------------------------------------------------

    /** Operations per second: one after the other on this thread, or that many chains of continuations. */
    static double throughput(IntFunction<CompletionStage<?>> operation, int inFlight, long millis) throws Exception {
        long began = System.nanoTime();
        long until = began + millis * 1_000_000;
        AtomicLong done = new AtomicLong();
        if (inFlight == 1) {
            long count = 0;
            while (System.nanoTime() < until) {
                operation.apply(0).toCompletableFuture().get();
                count++;
            }
            done.set(count);
        } else {
            List<CompletableFuture<Void>> lanes = new ArrayList<>();
            for (int lane = 0; lane < inFlight; lane++) {
                CompletableFuture<Void> end = new CompletableFuture<>();
                lanes.add(end);
                next(operation, lane, until, done, end);
            }
            for (CompletableFuture<Void> lane : lanes) {
                lane.get();
            }
        }
        return done.get() / ((System.nanoTime() - began) / 1e9);
    }

    static void next(IntFunction<CompletionStage<?>> operation, int lane, long until, AtomicLong done, CompletableFuture<Void> end) {
        if (System.nanoTime() >= until) {
            end.complete(null);
            return;
        }
        operation.apply(lane).whenComplete((result, failure) -> {
            if (failure != null) {
                end.completeExceptionally(failure);
            } else {
                done.incrementAndGet();
                next(operation, lane, until, done, end);
            }
        });
    }

    /** CPU time and waits of this process so far: what a lone call costs besides time, and what a busy machine does not blur. */
    record Spent(double cpuMicros, long switches) {
        static Spent now() throws Exception {
            var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
            long switches = 0;
            try (var threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
                for (Path thread : threads) {
                    try {
                        for (String line : Files.readAllLines(thread.resolve("status"))) {
                            switches += line.startsWith("voluntary_ctxt_switches:") ? Long.parseLong(line.replaceAll("\\D", "")) : 0;
                        }
                    } catch (NoSuchFileException ended) {
                        // What it did goes uncounted.
                    }
                }
            }
            return new Spent(system.getProcessCpuTime() / 1e3, switches);
        }
    }

    /** The medians of one side, in turn with the others: operations, and what each costs. */
    record Side(double perSecond, double serverMicros, double clientMicros, double switches) {
        @Override
        public String toString() {
            return String.format("%.2f µs of the server, %.2f µs and %.2f waits of the client", serverMicros, clientMicros, switches);
        }
    }

    static Map<String, Side> row(Map<String, IntFunction<CompletionStage<?>>> sides, int inFlight, RedisAsyncCommands<String, byte[]> redis)
            throws Exception {
        Map<String, List<Side>> rounds = new LinkedHashMap<>();
        for (var side : sides.entrySet()) {
            throughput(side.getValue(), inFlight, ROUND_MS);
            rounds.put(side.getKey(), new ArrayList<>());
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (var side : sides.entrySet()) {
                double before = serverCpu(redis);
                Spent spent = Spent.now();
                double speed = throughput(side.getValue(), inFlight, ROUND_MS);
                Spent more = Spent.now();
                double operations = speed * ROUND_MS / 1e3;
                rounds.get(side.getKey()).add(new Side(speed, (serverCpu(redis) - before) * 1e6 / operations,
                        (more.cpuMicros() - spent.cpuMicros()) / operations, (more.switches() - spent.switches()) / operations));
            }
        }
        Map<String, Side> medians = new LinkedHashMap<>();
        rounds.forEach((side, all) -> medians.put(side, new Side(median(all, Side::perSecond), median(all, Side::serverMicros),
                median(all, Side::clientMicros), median(all, Side::switches))));
        medians.forEach((side, median) -> System.out.println("      " + side + " per operation: " + median));
        return medians;
    }

    static double median(List<Side> rounds, ToDoubleFunction<Side> figure) {
        return median(rounds.stream().mapToDouble(figure).boxed().toList());
    }

    static double median(List<Double> numbers) {
        return numbers.stream().sorted().skip(numbers.size() / 2).findFirst().orElseThrow();
    }

    static void add(String work, double ours, double rival, String unit, String rivalName, String goal) {
        String line = String.format("| %s | %,.0f %s | %,.0f %s (%s) | %.2f× | %s |", work, ours, unit, rival, unit, rivalName, ours / rival, goal);
        TABLE.add(line);
        System.out.println("   " + line);
    }

    static Map<String, IntFunction<CompletionStage<?>>> sides(Object... namesAndOperations) {
        Map<String, IntFunction<CompletionStage<?>>> sides = new LinkedHashMap<>();
        for (int index = 0; index < namesAndOperations.length; index += 2) {
            @SuppressWarnings("unchecked")
            IntFunction<CompletionStage<?>> operation = (IntFunction<CompletionStage<?>>) namesAndOperations[index + 1];
            sides.put((String) namesAndOperations[index], operation);
        }
        return sides;
    }

    static IntFunction<CompletionStage<?>> op(IntFunction<CompletionStage<?>> operation) {
        return operation;
    }

    // ---- the rows ------------------------------------------------------------------------------------------------------------------

    public static void main(String[] arguments) throws Exception {
        Set<String> wanted = arguments.length == 0 ? Set.of("read", "write", "blob", "scan", "lock") : Set.of(arguments);
        Process server = new ProcessBuilder("target/debug/zlink-test-servers", "single").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader told = server.inputReader();
        Matcher url = Pattern.compile("\"url\":\"(redis://[^\"]+)\"").matcher(told.readLine());
        url.find();
        RedisClient client = RedisClient.create(url.group(1));
        RedisAsyncCommands<String, byte[]> lettuce = client.connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE)).async();
        var locations = new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                .setConnectionString(url.group(1)).setKeyPrefix("bench").setOperationTimeout(MINUTE));
        var blobs = new ZLinkRedisRelocationStore(new ZLinkRedisRelocationOptions()
                .setConnectionString(url.group(1)).setKeyPrefix("bench-blobs").setOperationTimeout(MINUTE));
        URI address = URI.create(url.group(1));
        GlideClient glide = GlideClient.createClient(GlideClientConfiguration.builder()
                .address(NodeAddress.builder().host(address.getHost()).port(address.getPort()).build())
                .requestTimeout((int) MINUTE.toMillis())
                .inflightRequestsLimit(10_000)
                .build()).get();
        System.out.printf("Java %s; Lettuce 7.7.0 (async, automatic flush), valkey-glide 2.1.1 (10,000 in flight allowed), Redisson 4.0.0 (defaults), Redis %s; %d rounds of %d ms%n",
                Runtime.version(), redisVersion(lettuce), ROUNDS, ROUND_MS);
        for (int index = 0; index < KEYS; index++) {
            NAMES[index] = name(index);
            PLAIN[index] = "plain:" + name(index);
        }
        byte[] value = new byte[256];
        Arrays.fill(value, (byte) 'v');
        fill(locations, value, KEYS);
        for (int index = 0; index < KEYS; index++) {
            lettuce.set(PLAIN[index], value).get();
        }
        if (wanted.contains("read")) {
            read(locations, lettuce, glide);
        }
        if (wanted.contains("write")) {
            write(locations, lettuce, value);
        }
        if (wanted.contains("blob")) {
            blob(blobs, lettuce);
        }
        if (wanted.contains("lock")) {
            lock(url.group(1), lettuce);
        }
        if (wanted.contains("scan")) {
            lettuce.flushdb().get();
            scan(url.group(1), lettuce, value);
        }
        System.out.println("\n| work | ours | rival | ratio | goal |\n|---|---|---|---|---|\n" + String.join("\n", TABLE));
        locations.close();
        blobs.close();
        client.shutdown();
        glide.close();
        server.getOutputStream().close();
        server.waitFor();
    }

    static String redisVersion(RedisAsyncCommands<String, byte[]> redis) throws Exception {
        Matcher version = Pattern.compile("redis_version:(\\S+)").matcher(redis.info("server").get());
        version.find();
        return version.group(1);
    }

    static void fill(ZLinkLocationStore store, byte[] value, int count) throws Exception {
        for (int from = 0; from < count; from += 1_000) {
            List<ZLinkStoreMutation> puts = new ArrayList<>();
            for (int index = from; index < from + 1_000; index++) {
                puts.add(new ZLinkStorePut(new ZLinkStoreKey(name(index)), value, null));
            }
            store.write(new ZLinkStoreWriteRequest(List.of(), puts), null).toCompletableFuture().get();
        }
    }

    static void read(ZLinkLocationStore locations, RedisAsyncCommands<String, byte[]> lettuce, GlideClient glide) throws Exception {
        String[][] goals = {{"1", "≥ 0.9×"}, {"64", "≥ 1.5×"}, {"1024", "≥ 2×"}};
        for (String[] goal : goals) {
            int inFlight = Integer.parseInt(goal[0]);
            Map<String, Side> result = row(sides(
                    "ours", op(lane -> locations.read(new ZLinkStoreKey(NAMES[pick()]), null)),
                    "Lettuce GET", op(lane -> lettuce.get(PLAIN[pick()])),
                    "valkey-glide GET", op(lane -> glide.get(GlideString.of(PLAIN[pick()])))), inFlight, lettuce);
            double other = result.get("valkey-glide GET").perSecond();
            double ours = result.get("ours").perSecond();
            String rival = inFlight > 1 && other > result.get("Lettuce GET").perSecond() ? "valkey-glide GET" : "Lettuce GET";
            System.out.printf("      valkey-glide: %,.0f ops/s, %.2f×%n", other, ours / other);
            add("read 256 B, " + goal[0] + " in flight", ours, result.get(rival).perSecond(), "ops/s", rival, goal[1]);
        }
    }

    static void write(ZLinkLocationStore locations, RedisAsyncCommands<String, byte[]> lettuce, byte[] value) throws Exception {
        Map<String, Side> put = row(sides(
                "ours", op(lane -> locations.write(new ZLinkStoreWriteRequest(
                        List.of(), List.of(new ZLinkStorePut(new ZLinkStoreKey(NAMES[pick()]), value, null))), null)),
                "Lettuce SET", op(lane -> lettuce.set(PLAIN[pick()], value))), 64, lettuce);
        add("put, 64 in flight", put.get("ours").perSecond(), put.get("Lettuce SET").perSecond(), "ops/s", "Lettuce SET", "≥ 1×");
        ZLinkStoreVersion[] versions = new ZLinkStoreVersion[64];
        Map<String, Side> cas = row(sides(
                "ours", op(lane -> {
                    ZLinkStoreKey key = new ZLinkStoreKey("cas/" + lane);
                    ZLinkStoreCondition condition = versions[lane] == null
                            ? new ZLinkStoreMissingCondition(key)
                            : new ZLinkStoreVersionCondition(key, versions[lane]);
                    return locations.write(new ZLinkStoreWriteRequest(List.of(condition), List.of(new ZLinkStorePut(key, value, null))), null)
                            .thenAccept(result -> versions[lane] = ((ZLinkStoreWriteApplied) result).putVersions().get(key));
                }),
                "Lettuce SET", op(lane -> lettuce.set(PLAIN[pick()], value))), 64, lettuce);
        add("CAS, 64 in flight", cas.get("ours").perSecond(), cas.get("Lettuce SET").perSecond(), "ops/s", "Lettuce SET", "≥ 1×");
    }

    static void blob(ZLinkRelocationStore blobs, RedisAsyncCommands<String, byte[]> lettuce) throws Exception {
        for (int mib : new int[] {1, 64}) {
            byte[] payload = new byte[mib << 20];
            AtomicLong next = new AtomicLong();
            Map<String, Side> put = row(sides(
                    "ours", op(lane -> {
                        ByteBuffer.wrap(payload).putLong(0, next.incrementAndGet());
                        ZLinkBlobReference reference = new ZLinkBlobReference("blob/" + mib + "/" + next.get());
                        return blobs.put(reference, payload, MINUTE, null).thenCompose(stored -> blobs.delete(reference, null));
                    }),
                    "Lettuce SET", op(lane -> lettuce.set("plain:blob", payload, SetArgs.Builder.px(MINUTE.toMillis())))), 1, lettuce);
            add("blob put " + mib + " MiB (ours: and delete)", put.get("ours").perSecond() * mib, put.get("Lettuce SET").perSecond() * mib, "MiB/s",
                    "Lettuce SET", "≥ 1×");
            ZLinkBlobReference kept = new ZLinkBlobReference("kept/" + mib);
            blobs.put(kept, payload, Duration.ofHours(1), null).toCompletableFuture().get();
            lettuce.set("plain:blob", payload).get();
            Map<String, Side> get = row(sides(
                    "ours", op(lane -> blobs.read(kept, null)),
                    "Lettuce GET", op(lane -> lettuce.get("plain:blob"))), 1, lettuce);
            add("blob read " + mib + " MiB", get.get("ours").perSecond() * mib, get.get("Lettuce GET").perSecond() * mib, "MiB/s", "Lettuce GET", "≥ 1×");
        }
    }

    static void lock(String url, RedisAsyncCommands<String, byte[]> lettuce) throws Exception {
        Project project = new Project(new ProjectOptions(url, "bench", "java").withOperationTimeout(MINUTE));
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        RedissonClient redisson = Redisson.create(config);
        // An invocation has 16 leases at most: each lane is one.
        List<DistributedLocks> invocations = new ArrayList<>();
        List<RLock> locks = new ArrayList<>();
        for (int lane = 0; lane < 64; lane++) {
            invocations.add(project.locks());
            locks.add(redisson.getLock("redisson:" + lane));
        }
        LockOptions options = LockOptions.defaults().withLeaseTime(Duration.ofSeconds(30));
        for (int inFlight : new int[] {1, 64}) {
            Map<String, Side> result = row(sides(
                    "ours", op(lane -> invocations.get(lane).acquire("lock/" + lane, options).thenCompose(lease -> lease.orElseThrow().release())),
                    "Redisson RLock", op(lane -> locks.get(lane).tryLockAsync(0, 30_000, TimeUnit.MILLISECONDS, lane + 1).thenCompose(got -> {
                        if (!got) {
                            throw new IllegalStateException("a lock of one lane is held");
                        }
                        return locks.get(lane).unlockAsync(lane + 1);
                    }))), inFlight, lettuce);
            add("lock acquire + release, " + (inFlight == 1 ? "1" : inFlight + " different locks") + " in flight", result.get("ours").perSecond(),
                    result.get("Redisson RLock").perSecond(), "pairs/s", "Redisson RLock", "≥ 2×");
        }
        redisson.shutdown();
        project.close();
    }

    static void scan(String url, RedisAsyncCommands<String, byte[]> lettuce, byte[] value) throws Exception {
        try (var store = new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                .setConnectionString(url).setKeyPrefix("scan").setOperationTimeout(MINUTE))) {
            fill(store, value, RECORDS);
            for (int index = 0; index < RECORDS; index++) {
                lettuce.set("plain:" + name(index), value);
            }
            List<Double> ours = new ArrayList<>();
            List<Double> theirs = new ArrayList<>();
            for (int round = 0; round <= ROUNDS; round++) {
                long began = System.nanoTime();
                ZLinkStoreScanCursor cursor = null;
                int seen = 0;
                do {
                    var page = (ZLinkStoreScanPageResult) store.scan(new ZLinkStoreScanRequest("", cursor, 1_000), null).toCompletableFuture().get();
                    seen += page.value().items().size();
                    cursor = page.value().nextCursor();
                } while (cursor != null);
                double scanned = seen / ((System.nanoTime() - began) / 1e9);
                began = System.nanoTime();
                for (int from = 0; from < RECORDS; from += 1_000) {
                    String[] keys = new String[1_000];
                    for (int index = 0; index < keys.length; index++) {
                        keys[index] = "plain:" + name(from + index);
                    }
                    lettuce.mget(keys).get();
                }
                if (round > 0) {
                    ours.add(scanned);
                    theirs.add(RECORDS / ((System.nanoTime() - began) / 1e9));
                }
            }
            add("full scan of 100k records, pages of 1,000", median(ours), median(theirs), "items/s", "Lettuce MGET by 1,000", "≥ 0.5×");
        }
    }
}
