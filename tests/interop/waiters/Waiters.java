// Takes turns on one lock, many at a time, as node.mjs does, which says what goes to the output: `Waiters.java url key waiters`.

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import systems.zlink.project.state.*;

public class Waiters {
    static final PrintStream OUTPUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final LockOptions OPTIONS = LockOptions.defaults().withWaitTime(Duration.ofSeconds(10)).withLeaseTime(Duration.ofSeconds(5));

    public static void main(String[] arguments) throws Exception {
        Project project = new Project(new ProjectOptions(arguments[0], "waiters", "p").withOperationTimeout(Duration.ofSeconds(30)));
        say("ready");
        for (int waiter = 0; waiter < Integer.parseInt(arguments[2]); waiter++) {
            turn(project.locks(), arguments[1], waiter);
        }
        while (System.in.read() >= 0) {
            // Until it ends.
        }
        System.exit(0);
    }

    static void turn(DistributedLocks locks, String key, int waiter) {
        locks.acquire(key, OPTIONS)
                .thenCompose(lease -> lease.map(got -> hold(got, waiter)).orElseGet(() -> {
                    say("none", waiter);
                    return CompletableFuture.completedFuture(null);
                }))
                .whenComplete((nothing, failure) -> {
                    // Lost: a machine that stands still for 5 s.
                    if (failure != null && !(failure instanceof CompletionException told && told.getCause() instanceof LockLostException)) {
                        failure.printStackTrace();
                        System.exit(1);
                    }
                    turn(locks, key, waiter);
                });
    }

    static CompletionStage<Void> hold(LockLease lease, int waiter) {
        say("got", waiter, lease.fencingToken(), lease.expiresAt().toEpochMilli(), System.nanoTime(), System.currentTimeMillis());
        Executor later = CompletableFuture.delayedExecutor(5 + ThreadLocalRandom.current().nextInt(15), TimeUnit.MILLISECONDS);
        return CompletableFuture.runAsync(() -> say("giving", waiter, lease.fencingToken(), System.nanoTime()), later)
                .thenCompose(nothing -> lease.release());
    }

    static void say(Object... words) {
        // One line each, whatever threads speak.
        OUTPUT.println(Stream.of(words).map(String::valueOf).collect(Collectors.joining(" ")));
    }
}
