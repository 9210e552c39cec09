import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import systems.zlink.project.state.DistributedLocks;
import systems.zlink.project.state.JsonCodec;
import systems.zlink.project.state.LockLease;
import systems.zlink.project.state.LockLostException;
import systems.zlink.project.state.LockOptions;
import systems.zlink.project.state.Project;
import systems.zlink.project.state.ProjectOptions;
import systems.zlink.project.state.StateConflictException;
import systems.zlink.project.state.StateEntry;
import systems.zlink.project.state.StateNamespace;
import systems.zlink.project.state.StateWriteOptions;

/**
 * Two workers take turns with a lock; one of them hangs, and what it writes afterwards is refused by its fencing token. Here everything runs
 * on the embedded engine in memory; for workers in several processes, only the URL changes.
 */
public class Turns {
    private static final String URL = "memory:turns";
    private static final LockOptions INVOICE = LockOptions.defaults().withNamespace("invoice");

    /** What has been paid of an invoice, and the largest fencing token that it has seen. */
    record Paid(long amount, long token) {
        private static final Pattern JSON = Pattern.compile("\\{\"amount\":(\\d+),\"token\":(\\d+)}");

        /** With Jackson: {@code JsonCodec.of(mapper::writeValueAsString, json -> mapper.readValue(json, Paid.class))}. */
        static final JsonCodec<Paid> CODEC = JsonCodec.of(
                paid -> "{\"amount\": %d, \"token\": %d}".formatted(paid.amount, paid.token),
                json -> {
                    Matcher match = JSON.matcher(json);
                    if (!match.matches()) {
                        throw new IllegalArgumentException("no payment: " + json);
                    }
                    return new Paid(Long.parseLong(match.group(1)), Long.parseLong(match.group(2)));
                });
    }

    /** What the lock guards: it refuses a fencing token smaller than one it has seen. */
    private static String pay(StateNamespace<Paid> invoices, String number, long amount, long token) {
        while (true) {
            StateEntry<Paid> seen = join(invoices.get(number)).orElse(null);
            if (seen != null && seen.value().token() > token) {
                return "refused";
            }
            long before = seen == null ? 0 : seen.value().amount();
            // Whoever is late in spite of the lock meets the version that it has not seen.
            StateWriteOptions unchanged = StateWriteOptions.defaults().withExpectedVersion(seen == null ? 0 : seen.version());
            try {
                join(invoices.set(number, new Paid(before + amount, token), unchanged));
                return "accepted";
            } catch (StateConflictException conflict) {
                // Read it again.
            }
        }
    }

    private static CompletionStage<Void> work(String name, Project project, StateNamespace<Paid> invoices) {
        DistributedLocks locks = project.locks();
        Function<Integer, CompletionStage<Void>> turn = number ->
                locks.withLock("INV-1", INVOICE.withWaitTime(Duration.ofSeconds(5)), lease -> {
                    String said = pay(invoices, "INV-1", 10, lease.fencingToken());
                    System.out.printf("  %s, turn %d: token %s, payment %s%n", name, number, shortened(lease), said);
                    return CompletableFuture.runAsync(() -> { }, CompletableFuture.delayedExecutor(50, TimeUnit.MILLISECONDS));
                });
        return turn.apply(1).thenCompose(done -> turn.apply(2)).thenCompose(done -> turn.apply(3));
    }

    public static void main(String[] arguments) {
        ProjectOptions options = new ProjectOptions(URL, "acme", "billing");
        try (Project red = new Project(options); Project blue = new Project(options)) {
            StateNamespace<Paid> invoices = red.state().namespace("invoices", Paid.CODEC);

            System.out.println("Two workers want the same lock; each waits for its turn:");
            CompletionStage<Void> reds = work("red", red, invoices);
            join(work("blue", blue, invoices));
            join(reds);

            System.out.println("Red takes the lock and hangs. An operator frees it by its id, and blue goes on:");
            LockLease stale = join(red.locks().acquire("INV-1", INVOICE)).orElseThrow();
            System.out.println("  red has token " + shortened(stale));
            join(blue.locks().attach(stale.id()).thenCompose(LockLease::release));
            join(blue.locks().withLock("INV-1", INVOICE, lease -> {
                String said = pay(invoices, "INV-1", 10, lease.fencingToken());
                System.out.println("  blue has token " + shortened(lease) + ", payment " + said);
                return CompletableFuture.completedStage(said);
            }));

            System.out.println("Red wakes up and does not know that its time is over:");
            System.out.println("  red pays with token " + shortened(stale) + ": " + pay(invoices, "INV-1", 10, stale.fencingToken()));
            try {
                join(stale.release());
                System.out.println("  red releases: done");
            } catch (LockLostException lost) {
                System.out.println("  red releases: the lease was lost");
            }

            StateEntry<Paid> paid = join(invoices.get("INV-1")).orElseThrow();
            System.out.printf(
                    "Paid %d in %d writes: seven accepted, none twice, none by the stale holder.%n", paid.value().amount(), paid.version());
            if (paid.value().amount() != 70 || paid.version() != 7) {
                System.exit(1);
            }
        }
    }

    private static String shortened(LockLease lease) {
        String token = Long.toString(lease.fencingToken());
        return "…" + token.substring(token.length() - 7);
    }

    /** The result, or the exception itself. */
    private static <T> T join(CompletionStage<T> stage) {
        try {
            return stage.toCompletableFuture().join();
        } catch (CompletionException failure) {
            throw failure.getCause() instanceof RuntimeException own ? own : failure;
        }
    }
}
