package systems.zlink.store.tests.loading;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.store.ZLinkStoreException;

/** A hundred operations over everything, error paths included. Uses nothing but the packages: it is loaded in many ways. */
public final class Workout {
    private Workout() {}

    /** Arguments: the URL of a Redis server, and a folder for temporary files. */
    public static void main(String... arguments) throws Exception {
        // Keys and references differ from run to run.
        String run = Long.toHexString(System.nanoTime());
        Duration timeout = Duration.ofSeconds(30);
        Path folder = Files.createTempDirectory(Path.of(arguments[1]), "data");
        try (var memory = new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions());
                var file = new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions().setPath(folder).setOperationTimeout(timeout));
                var redis = new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                        .setConnectionString(arguments[0]).setKeyPrefix("workout").setOperationTimeout(timeout))) {
            for (ZLinkLocationStore store : List.of(memory, file, redis)) {
                records(store, run);
            }
        }
        try (var memory = new ZLinkEmbeddedRelocationStore(new ZLinkEmbeddedRelocationOptions());
                var redis = new ZLinkRedisRelocationStore(new ZLinkRedisRelocationOptions()
                        .setConnectionString(arguments[0]).setKeyPrefix("workout").setOperationTimeout(timeout))) {
            for (ZLinkRelocationStore store : List.of(memory, redis)) {
                blobs(store, run);
            }
        }
        failures();
        System.out.println("worked out");
    }

    private static void records(ZLinkLocationStore store, String run) throws Exception {
        for (int index = 0; index < 20; index++) {
            ZLinkStoreKey key = new ZLinkStoreKey(run + "/" + index);
            var write = new ZLinkStoreWriteRequest(
                    List.of(new ZLinkStoreMissingCondition(key)),
                    List.of(new ZLinkStorePut(key, new byte[index * 700], Duration.ofMinutes(1))));
            check(get(store.write(write, () -> false)) instanceof ZLinkStoreWriteApplied);
            check(get(store.write(write, null)) instanceof ZLinkStoreWriteConflict);
            check(((ZLinkStoreReadFound) get(store.read(key, null))).value().bytes().length == index * 700);
        }
        int seen = 0;
        ZLinkStoreScanCursor cursor = null;
        do {
            ZLinkStoreScanPage page = ((ZLinkStoreScanPageResult) get(store.scan(new ZLinkStoreScanRequest(run, cursor, 7), null))).value();
            seen += page.items().size();
            cursor = page.nextCursor();
        } while (cursor != null);
        check(seen == 20);
        check(get(store.read(new ZLinkStoreKey(run + "/none"), null)) instanceof ZLinkStoreReadMissing);
        try {
            get(store.read(new ZLinkStoreKey("k"), () -> true));
            check(false);
        } catch (CancellationException expected) {
            // As it should be.
        }
        try {
            store.read(new ZLinkStoreKey(""), null);
            check(false);
        } catch (IllegalArgumentException expected) {
            // As it should be.
        }
    }

    private static void blobs(ZLinkRelocationStore store, String run) throws Exception {
        for (int size : new int[] {0, 1, 5_000, 300_000, 2_000_000}) {
            ZLinkBlobReference reference = new ZLinkBlobReference(run + "/" + size);
            byte[] payload = new byte[size];
            check(get(store.put(reference, payload, Duration.ofMinutes(1), null)) instanceof ZLinkBlobStored);
            check(get(store.put(reference, payload, Duration.ofMinutes(1), null)) instanceof ZLinkBlobAlreadyStored);
            check(((ZLinkBlobFound) get(store.read(reference, () -> false))).bytes().length == size);
            check(get(store.renew(reference, Duration.ofMinutes(2), null)) instanceof ZLinkBlobRenewed);
            get(store.delete(reference, null));
            check(get(store.read(reference, null)) instanceof ZLinkBlobMissing);
        }
    }

    private static void failures() throws Exception {
        // Nobody listens there.
        try (var store = new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                .setConnectionString("localhost:1").setKeyPrefix("p").setOperationTimeout(Duration.ofMillis(200)))) {
            store.read(new ZLinkStoreKey("k"), null).toCompletableFuture().get(30, TimeUnit.SECONDS);
            check(false);
        } catch (java.util.concurrent.ExecutionException ended) {
            check(ended.getCause() instanceof TimeoutException || ended.getCause() instanceof ZLinkStoreException);
        }
    }

    private static <T> T get(java.util.concurrent.CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError();
        }
    }
}
