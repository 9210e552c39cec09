package systems.zlink.store.tests.binding;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
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
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.out.println("main ends at " + System.currentTimeMillis());
    }
}
