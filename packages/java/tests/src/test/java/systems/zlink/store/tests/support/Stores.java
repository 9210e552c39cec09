package systems.zlink.store.tests.support;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;
import systems.zlink.framework.locations.redis.*;

/** Shorthand for what many tests do. */
public final class Stores {
    /** Long, so that a busy machine fails nothing. */
    public static final Duration PATIENCE = Duration.ofSeconds(30);

    private Stores() {}

    public static ZLinkEmbeddedLocationStore inMemory() {
        return new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions());
    }

    public static ZLinkEmbeddedRelocationStore blobsInMemory() {
        return new ZLinkEmbeddedRelocationStore(new ZLinkEmbeddedRelocationOptions());
    }

    public static ZLinkRedisLocationStore redis(String url, Duration timeout) {
        return new ZLinkRedisLocationStore(
                new ZLinkRedisLocationOptions().setConnectionString(url).setKeyPrefix("test").setOperationTimeout(timeout));
    }

    public static ZLinkRedisRelocationStore redisBlobs(String url, Duration timeout) {
        return new ZLinkRedisRelocationStore(
                new ZLinkRedisRelocationOptions().setConnectionString(url).setKeyPrefix("test").setOperationTimeout(timeout));
    }

    public static ZLinkStoreKey key(String text) {
        return new ZLinkStoreKey(text);
    }

    public static ZLinkBlobReference reference(String text) {
        return new ZLinkBlobReference(text);
    }

    public static ZLinkStoreWriteRequest put(String key, byte[] bytes) {
        return new ZLinkStoreWriteRequest(List.of(), List.of(new ZLinkStorePut(key(key), bytes, null)));
    }

    /** The result, within a time that is long enough for anything but a hang. */
    public static <T> T await(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    /** What the stage ends with: a result, or the very exception. */
    public static Object end(CompletionStage<?> stage) throws Exception {
        CompletableFuture<Object> end = new CompletableFuture<>();
        stage.whenComplete((result, failure) -> end.complete(failure == null ? result : failure));
        return end.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }
}
