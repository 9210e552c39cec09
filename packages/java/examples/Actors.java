// Three nodes of an actor framework share one Location Store: they claim actors, one dies, and the others take over. Everything here
// runs on the embedded engine in a folder; on Redis only the constructor of the store changes.

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;

public class Actors {
    static final Duration LEASE = Duration.ofMillis(1_500);
    static final List<String> ACTORS = List.of("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan");

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("zlink-demo-");
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        List<Node> nodes = Stream.of("red", "green", "blue").map(name -> new Node(name, folder)).toList();
        try {
            System.out.println("1. Three nodes start; each keeps a lease of " + LEASE.toMillis() + " ms alive.");
            nodes.forEach(node -> node.start(clock));

            System.out.println("2. All three try to claim the same nine actors at once; each actor gets exactly one owner.");
            List<CompletableFuture<Boolean>> claims = new ArrayList<>();
            for (int actor = 0; actor < ACTORS.size(); actor++) {
                for (int turn = 0; turn < nodes.size(); turn++) {
                    claims.add(nodes.get((actor + turn) % nodes.size()).claim(ACTORS.get(actor)).toCompletableFuture());
                }
            }
            long granted = claims.stream().filter(CompletableFuture::join).count();
            System.out.println("   " + claims.size() + " claims, " + granted + " granted. A snapshot scan in pages of 4 lists them:");
            show(nodes.get(0));

            System.out.println("3. blue dies without a word. Nobody compares clocks: its lease runs out on the engine's own.");
            nodes.get(2).die();
            while (nodes.get(0).isAlive("blue")) {
                Thread.sleep(50);
            }

            System.out.println("4. red and green both take over what was blue's; conditions keep it exact.");
            List<CompletableFuture<Integer>> recoveries = new ArrayList<>();
            for (Node node : nodes.subList(0, 2)) {
                recoveries.add(CompletableFuture.supplyAsync(node::recover));
            }
            System.out.println("   taken over: " + recoveries.get(0).join() + " by red, " + recoveries.get(1).join() + " by green");
            show(nodes.get(1));
            System.out.println("Done. On Redis, replace the store's constructor; nothing else changes.");
        } finally {
            clock.shutdownNow();
            nodes.forEach(Node::stop);
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    static void show(Node node) {
        for (Actor actor : node.actors()) {
            System.out.printf("     %-8s on %s%n", actor.name(), actor.owner());
        }
    }

    /** An actor as a scan has seen it. */
    record Actor(String name, String owner, ZLinkStoreVersion version) {}

    /** One node of the framework: a lease that says it is alive, and the actors that it owns. */
    static final class Node {
        private final String name;
        private final ZLinkEmbeddedLocationStore store;
        private ScheduledFuture<?> heart;

        Node(String name, Path folder) {
            this.name = name;
            store = new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions().setPath(folder).setKeyPrefix("demo"));
        }

        void start(ScheduledExecutorService clock) {
            renew().toCompletableFuture().join();
            heart = clock.scheduleAtFixedRate(this::renew, LEASE.toMillis() / 3, LEASE.toMillis() / 3, TimeUnit.MILLISECONDS);
        }

        /** Says "I am alive" for another lease; on the engine's clock, not on ours. */
        CompletionStage<ZLinkStoreWriteResult> renew() {
            return store.write(new ZLinkStoreWriteRequest(List.of(), List.of(put("node/" + name, "", LEASE))), null);
        }

        /** Claims an actor that nobody owns. Of all nodes that try, exactly one gets it. */
        CompletionStage<Boolean> claim(String actor) {
            return assign(new ZLinkStoreMissingCondition(new ZLinkStoreKey("actor/" + actor)), actor);
        }

        private CompletionStage<Boolean> assign(ZLinkStoreCondition condition, String actor) {
            return store.write(new ZLinkStoreWriteRequest(List.of(condition), List.of(put("actor/" + actor, name, null))), null)
                    .thenApply(result -> result instanceof ZLinkStoreWriteApplied);
        }

        /** Takes over the actors of nodes that are dead, each if it is still as it was seen. */
        int recover() {
            int taken = 0;
            for (Actor actor : actors()) {
                var asSeen = new ZLinkStoreVersionCondition(new ZLinkStoreKey("actor/" + actor.name()), actor.version());
                if (!isAlive(actor.owner()) && assign(asSeen, actor.name()).toCompletableFuture().join()) {
                    taken++;
                }
            }
            return taken;
        }

        /** Every actor, from one snapshot, page by page. */
        List<Actor> actors() {
            List<Actor> actors = new ArrayList<>();
            ZLinkStoreScanCursor cursor = null;
            do {
                var result = store.scan(new ZLinkStoreScanRequest("actor/", cursor, 4), null).toCompletableFuture().join();
                if (!(result instanceof ZLinkStoreScanPageResult page)) {
                    throw new IllegalStateException("the snapshot is gone: start the scan again");
                }
                for (ZLinkStoreScanItem item : page.value().items()) {
                    String owner = new String(item.value().bytes(), StandardCharsets.UTF_8);
                    actors.add(new Actor(item.key().value().substring("actor/".length()), owner, item.value().version()));
                }
                cursor = page.value().nextCursor();
            } while (cursor != null);
            return actors;
        }

        boolean isAlive(String node) {
            return store.read(new ZLinkStoreKey("node/" + node), null).toCompletableFuture().join() instanceof ZLinkStoreReadFound;
        }

        /** Stops without a word, as a crash does. */
        void die() {
            heart.cancel(false);
        }

        void stop() {
            die();
            store.close();
        }

        private static ZLinkStorePut put(String key, String value, Duration retention) {
            return new ZLinkStorePut(new ZLinkStoreKey(key), value.getBytes(StandardCharsets.UTF_8), retention);
        }
    }
}
