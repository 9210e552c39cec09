import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import io.lettuce.core.api.async.RedisAsyncCommands;

/** All sides in turn (A B A B): operations per second by round, and what an operation costs both processors. */
final class Measuring {
    static final int ROUNDS = Integer.parseInt(System.getenv().getOrDefault("BENCH_ROUNDS", "3"));
    static final long ROUND_MS = Long.parseLong(System.getenv().getOrDefault("BENCH_ROUND_MS", "2000"));

    /** What is done over and over, and what is tidied up after each round, unmeasured. */
    record Work(IntFunction<CompletionStage<?>> operation, Runnable tidy) {
        static Work of(IntFunction<CompletionStage<?>> operation) {
            return new Work(operation, () -> {});
        }
    }

    /** The figures of one side, by round. */
    record Side(List<Double> perSecond, List<Double> serverMicros, List<Double> clientMicros, List<Double> switches) {
        Side() {
            this(new ArrayList<>(), new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        }

        double speed() {
            return median(perSecond);
        }
    }

    private final RedisAsyncCommands<String, byte[]> redis;

    Measuring(RedisAsyncCommands<String, byte[]> redis) {
        this.redis = redis;
    }

    /** The sides in turn, after a warm-up; how each fared, in their order. */
    List<Side> row(int inFlight, Work... sides) throws Exception {
        return row(inFlight, Long.MAX_VALUE, sides);
    }

    /** As above, with so many operations in a round at most. */
    List<Side> row(int inFlight, long most, Work... sides) throws Exception {
        List<Side> results = new ArrayList<>();
        for (Work side : sides) {
            turn(side.operation(), inFlight, most);
            side.tidy().run();
            results.add(new Side());
        }
        for (int round = 0; round < ROUNDS; round++) {
            for (int index = 0; index < sides.length; index++) {
                double server = serverCpu();
                Spent before = Spent.now();
                Turn turn = turn(sides[index].operation(), inFlight, most);
                Spent after = Spent.now();
                double operations = turn.operations();
                Side result = results.get(index);
                result.perSecond().add(operations / turn.seconds());
                result.serverMicros().add((serverCpu() - server) * 1e6 / operations);
                result.clientMicros().add((after.cpuMicros() - before.cpuMicros()) / operations);
                result.switches().add((after.switches() - before.switches()) / operations);
                sides[index].tidy().run();
            }
        }
        return results;
    }

    private record Turn(long operations, double seconds) {}

    /** One after the other on this thread, or that many chains of continuations. */
    private static Turn turn(IntFunction<CompletionStage<?>> operation, int inFlight, long most) throws Exception {
        long began = System.nanoTime();
        long until = began + ROUND_MS * 1_000_000;
        AtomicLong done = new AtomicLong();
        if (inFlight == 1) {
            long count = 0;
            while (System.nanoTime() < until && count < most) {
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
        return new Turn(done.get(), (System.nanoTime() - began) / 1e9);
    }

    private static void next(
            IntFunction<CompletionStage<?>> operation, int lane, long until, AtomicLong done, CompletableFuture<Void> end) {
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
    private record Spent(double cpuMicros, long switches) {
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

    private double serverCpu() throws Exception {
        return Double.parseDouble(info(redis, "cpu", "used_cpu_sys")) + Double.parseDouble(info(redis, "cpu", "used_cpu_user"));
    }

    /** Reads one field out of what Redis tells about itself. */
    static String info(RedisAsyncCommands<String, byte[]> redis, String section, String name) throws Exception {
        Matcher found = Pattern.compile("(?m)^" + name + ":(\\S+)").matcher(redis.info(section).get());
        if (!found.find()) {
            throw new IllegalStateException("INFO " + section + " has no " + name);
        }
        return found.group(1);
    }

    static double median(List<Double> numbers) {
        return numbers.stream().sorted().skip(numbers.size() / 2).findFirst().orElseThrow();
    }

    /** A private server on the core that `tests/bench/pinned` names, if it names one. */
    static final class Server implements AutoCloseable {
        private final Process process;
        final String url;

        Server() throws Exception {
            String core = System.getenv("ZLINK_BENCH_SERVER_CORE");
            List<String> command = new ArrayList<>(core == null ? List.of() : List.of("taskset", "-c", core));
            command.addAll(List.of("target/debug/zlink-test-servers", "single"));
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
            BufferedReader told = process.inputReader();
            String line = String.valueOf(told.readLine());
            Matcher found = Pattern.compile("\"url\":\"(redis://[^\"]+)\"").matcher(line);
            if (!found.find()) {
                throw new IllegalStateException("the starter of test servers said " + line);
            }
            url = found.group(1);
        }

        @Override
        public void close() throws Exception {
            process.getOutputStream().close();
            process.waitFor();
        }
    }
}
