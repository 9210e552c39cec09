package systems.zlink.store.tests.binding;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.store.tests.support.Stores;

/** Programs that end without closing anything. */
final class Exits {
    private Exits() {}

    public static void main(String... arguments) throws Exception {
        String url = arguments[1];
        switch (arguments[0]) {
            case "idle" -> {
                Stores.await(Stores.redis(url, Duration.ofSeconds(60)).read(Stores.key("k"), null));
                Stores.await(Stores.inMemory().read(Stores.key("k"), null));
            }
            case "in-flight" -> {
                var store = Stores.redis(url, Duration.ofSeconds(60));
                List<CompletionStage<?>> pending = new ArrayList<>();
                for (int index = 0; index < 100; index++) {
                    pending.add(store.read(Stores.key("k" + index), () -> false));
                    pending.add(store.write(Stores.put("k" + index, new byte[100]), null));
                }
                Stores.redisBlobs(url, Duration.ofSeconds(60))
                        .put(Stores.reference("r"), new byte[8 * 1024 * 1024], Duration.ofMinutes(1), null);
                System.out.println(pending.stream().filter(stage -> !stage.toCompletableFuture().isDone()).count() + " pending");
            }
            case "exit" -> {
                var store = Stores.redis(url, Duration.ofSeconds(60));
                for (int index = 0; index < 10_000; index++) {
                    store.read(Stores.key("k" + index), null).thenAccept(result -> {});
                }
                System.exit(0);
            }
            case "threads" -> {
                // Operations of a store that needs no such thread come and go while the last store that needs one is closed.
                for (int round = 0; round < 100; round++) {
                    threadsEnd(url);
                }
                Poll.until("time is kept no longer", () -> threads().isEmpty());
                System.out.println("threads ended");
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("main ends at " + System.currentTimeMillis());
    }

    private static void threadsEnd(String url) throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        CountDownLatch begun = new CountDownLatch(1);
        try (var memory = Stores.inMemory()) {
            Thread beside = new Thread(() -> {
                while (!over.get()) {
                    memory.read(Stores.key("k"), null).toCompletableFuture().join();
                    begun.countDown();
                }
            });
            beside.start();
            try (var store = Stores.redis(url, Duration.ofSeconds(10))) {
                begun.await();
                Stores.await(store.read(Stores.key("k"), () -> false));
                if (!threads().contains("zlink-store-answers")) {
                    throw new AssertionError(threads().toString());
                }
            }
            over.set(true);
            beside.join();
        }
        Poll.until("answers are collected no longer", () -> !threads().contains("zlink-store-answers"));
    }

    private static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream().map(Thread::getName).filter(name -> name.startsWith("zlink-store-")).toList();
    }
}
