// Java as a participant (../README.md).

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.framework.locations.embedded.*;
import systems.zlink.framework.locations.redis.*;
import systems.zlink.project.state.*;
import systems.zlink.store.ZLinkStoreFailure;

public class Participant {
    static final PrintStream ANSWERS = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final int IN_FILE_FROM = 64 * 1024;
    static final Gson GSON = new Gson();
    static final Map<Integer, Object> STORES = new ConcurrentHashMap<>();
    /** What cancels the requests under way: every other one in this way … */
    static final Map<Integer, AtomicBoolean> CANCELLED = new ConcurrentHashMap<>();
    /** … and the rest through the futures of the stages. */
    static final Map<Integer, CompletableFuture<?>> STAGES = new ConcurrentHashMap<>();
    /** The locks of each invocation, by its number; and leases, by theirs. */
    static final Map<Integer, Invocation> INVOCATIONS = new ConcurrentHashMap<>();
    static final Map<Integer, LockLease> LEASES = new ConcurrentHashMap<>();

    record Invocation(Project project, DistributedLocks locks) {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonObject request = JsonParser.parseString(line).getAsJsonObject();
            CompletionStage<JsonObject> stage;
            try {
                AtomicBoolean cancelled = new AtomicBoolean(request.has("cancelled"));
                CANCELLED.put(number(request, "id"), cancelled);
                stage = obey(request, cancelled::get);
            } catch (RuntimeException error) {
                stage = CompletableFuture.failedFuture(error);
            }
            stage.whenComplete((result, failure) -> answer(request, result, failure));
        }
    }

    static void answer(JsonObject request, JsonObject result, Throwable failure) {
        CANCELLED.remove(number(request, "id"));
        STAGES.remove(number(request, "id"));
        JsonObject answer = new JsonObject();
        answer.add("id", request.get("id"));
        Throwable thrown = failure instanceof CompletionException ? failure.getCause() : failure;
        String kind = kind(thrown);
        if (kind != null) {
            answer.add("result", told(kind, null, null));
        } else if (thrown == null) {
            answer.add("result", result);
        } else {
            answer.add("error", error(thrown));
        }
        // One line each, whatever threads answer.
        ANSWERS.println(GSON.toJson(answer));
    }

    /** An exception that is a result on the wire. */
    static String kind(Throwable failure) {
        return failure instanceof StateConflictException ? "conflict"
                : failure instanceof RateLimitException ? "limitReached"
                : failure instanceof LockLostException ? "lost"
                : null;
    }

    static JsonObject error(Throwable failure) {
        JsonObject error = new JsonObject();
        error.addProperty("message", String.valueOf(failure.getMessage()));
        if (failure instanceof ZLinkStoreFailure told) {
            error.addProperty("code", told.code());
            error.addProperty("outcome", told.outcome());
        } else if (failure instanceof IllegalArgumentException) {
            error.addProperty("code", "INVALID_ARGUMENT");
        } else if (failure instanceof CancellationException) {
            error.addProperty("code", "CANCELLED");
        } else if (failure instanceof TimeoutException) {
            error.addProperty("code", "TIMEOUT");
        } else {
            failure.printStackTrace();
            System.exit(1);
        }
        return error;
    }

    static CompletionStage<JsonObject> obey(JsonObject request, ZLinkStoreCancellation cancellation) {
        String verb = text(request, "do");
        if (verb.equals("cancel")) {
            int number = number(request, "request");
            AtomicBoolean cancelled = CANCELLED.get(number);
            CompletableFuture<?> stage = STAGES.get(number);
            if (number % 2 == 0 && stage != null) {
                stage.cancel(true);
            } else if (cancelled != null) {
                cancelled.set(true);
            }
            return CompletableFuture.completedFuture(new JsonObject());
        }
        int store = number(request, "store");
        if (verb.startsWith("state")) {
            return state((Project) STORES.get(store), verb, request, cancellation);
        }
        if (verb.startsWith("lock")) {
            return lock((Project) STORES.get(store), verb, request, cancellation);
        }
        switch (verb) {
            case "open" -> {
                STORES.put(store, open(request));
                return CompletableFuture.completedFuture(new JsonObject());
            }
            case "close" -> {
                // It waits for what is under way, whose answers nobody else must wait for.
                return CompletableFuture.supplyAsync(() -> close(STORES.get(store)), task -> new Thread(task).start());
            }
            case "read" -> {
                return cancellable(request, location(store).read(new ZLinkStoreKey(text(request, "key")), cancellation))
                        .thenApply(Participant::told);
            }
            case "write" -> {
                ZLinkStoreWriteRequest write = write(request);
                return cancellable(request, location(store).write(write, cancellation))
                        .thenApply(Participant::told);
            }
            case "scan" -> {
                ZLinkStoreScanCursor cursor = request.has("cursor") ? new ZLinkStoreScanCursor(text(request, "cursor")) : null;
                ZLinkStoreScanRequest scan = new ZLinkStoreScanRequest(text(request, "prefix"), cursor, request.get("limit").getAsInt());
                return cancellable(request, location(store).scan(scan, cancellation))
                        .thenApply(Participant::told);
            }
            case "put" -> {
                return cancellable(request, relocation(store).put(reference(request), bytes(request), retention(request), cancellation))
                        .thenApply(Participant::told);
            }
            case "blobRead" -> {
                return cancellable(request, relocation(store).read(reference(request), cancellation))
                        .thenApply(Participant::told);
            }
            case "renew" -> {
                return cancellable(request, relocation(store).renew(reference(request), retention(request), cancellation))
                        .thenApply(Participant::told);
            }
            case "blobDelete" -> {
                return cancellable(request, relocation(store).delete(reference(request), cancellation))
                        .thenApply(nothing -> new JsonObject());
            }
            default -> throw new IllegalStateException(request.toString());
        }
    }

    /** A stage that a later request may cancel. */
    static <T> CompletionStage<T> cancellable(JsonObject request, CompletionStage<T> stage) {
        if (!stage.toCompletableFuture().isDone()) {
            STAGES.put(number(request, "id"), stage.toCompletableFuture());
        }
        return stage;
    }

    static CompletionStage<JsonObject> state(Project project, String verb, JsonObject request, ZLinkStoreCancellation cancellation) {
        StateNamespace<String> namespace = project.state().namespace(text(request, "namespace"));
        String key = text(request, "key");
        Long expectedVersion = optional(request, "expectedVersion");
        Long ttl = optional(request, "ttlSeconds");
        return switch (verb) {
            case "stateGet" -> namespace.get(key, cancellation)
                    .thenApply(entry -> entry.map(found -> told("entry", found)).orElseGet(() -> told("missing", null, null)));
            case "stateSet" -> namespace.set(
                            key,
                            text(request, "json"),
                            new StateWriteOptions(expectedVersion, ttl == null ? null : Duration.ofSeconds(ttl)),
                            cancellation)
                    .thenApply(entry -> told("stored", entry));
            case "stateDelete" -> namespace.delete(key, new StateDeleteOptions(expectedVersion), cancellation)
                    .thenApply(deleted -> told(deleted ? "deleted" : "missing", null, null));
            default -> throw new IllegalStateException(verb);
        };
    }

    static CompletionStage<JsonObject> lock(Project project, String verb, JsonObject request, ZLinkStoreCancellation cancellation) {
        int number = number(request, "lease");
        Duration leaseTime = millis(request, "leaseMs");
        return switch (verb) {
            case "lockAcquire" -> {
                LockOptions options = new LockOptions(
                        request.has("namespace") ? text(request, "namespace") : null, millis(request, "waitMs"), leaseTime);
                yield locks(project, request).acquire(text(request, "key"), options, cancellation)
                        .thenApply(lease -> lease.map(got -> keep(number, got)).orElseGet(() -> told("unavailable", null, null)));
            }
            case "lockAttach" -> locks(project, request).attach(text(request, "leaseId"), cancellation)
                    .thenApply(lease -> keep(number, lease));
            case "lockRenew" -> LEASES.get(number).renew(leaseTime, cancellation)
                    .thenApply(nothing -> told("renewed", LEASES.get(number).expiresAt(), null));
            case "lockRelease" -> LEASES.get(number).release(cancellation).thenApply(nothing -> told("released", null, null));
            default -> throw new IllegalStateException(verb);
        };
    }

    /** The locks of an invocation, which begins with the first request that names it; one of a project that was opened anew does so too. */
    static DistributedLocks locks(Project project, JsonObject request) {
        return INVOCATIONS.compute(number(request, "invocation"), (number, known) -> {
            if (known != null && known.project() == project) {
                return known;
            }
            return new Invocation(project, request.has("deadline")
                    ? project.locks(Instant.ofEpochMilli(request.get("deadline").getAsLong()))
                    : project.locks());
        }).locks();
    }

    static JsonObject keep(int number, LockLease lease) {
        LEASES.put(number, lease);
        JsonObject told = told("lease", lease.expiresAt(), null);
        told.addProperty("id", lease.id());
        told.addProperty("key", lease.key());
        told.addProperty("namespace", lease.namespace());
        told.addProperty("fencingToken", lease.fencingToken());
        return told;
    }

    static ZLinkLocationStore location(int store) {
        return (ZLinkLocationStore) STORES.get(store);
    }

    static ZLinkRelocationStore relocation(int store) {
        return (ZLinkRelocationStore) STORES.get(store);
    }

    static Object open(JsonObject request) {
        String address = text(request, "address");
        Duration timeout = millis(request, "operationTimeoutMs");
        if (text(request, "kind").equals("project")) {
            String url = text(request, "engine").equals("file") ? "file:" + address : address;
            return new Project(new ProjectOptions(url, text(request, "workspace"), text(request, "project"), timeout));
        }
        String prefix = text(request, "keyPrefix");
        boolean location = text(request, "kind").equals("location");
        if (text(request, "engine").equals("redis")) {
            return location
                    ? new ZLinkRedisLocationStore(new ZLinkRedisLocationOptions()
                            .setConnectionString(address).setKeyPrefix(prefix).setOperationTimeout(timeout))
                    : new ZLinkRedisRelocationStore(new ZLinkRedisRelocationOptions()
                            .setConnectionString(address).setKeyPrefix(prefix).setOperationTimeout(timeout));
        }
        return location
                ? new ZLinkEmbeddedLocationStore(new ZLinkEmbeddedLocationOptions()
                        .setPath(Path.of(address)).setKeyPrefix(prefix).setOperationTimeout(timeout))
                : new ZLinkEmbeddedRelocationStore(new ZLinkEmbeddedRelocationOptions()
                        .setPath(Path.of(address)).setKeyPrefix(prefix).setOperationTimeout(timeout));
    }

    static JsonObject close(Object store) {
        try {
            ((AutoCloseable) store).close();
            return new JsonObject();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    // ---- requests --------------------------------------------------------------------------------------------------------------

    static String text(JsonObject form, String name) {
        return form.get(name).getAsString();
    }

    static byte[] bytes(JsonObject form) {
        JsonElement bytes = form.get("bytes");
        if (bytes == null || bytes.isJsonPrimitive()) {
            return bytes == null ? null : Base64.getDecoder().decode(bytes.getAsString());
        }
        try {
            Path file = Path.of(text(bytes.getAsJsonObject(), "file"));
            byte[] content = Files.readAllBytes(file);
            Files.delete(file);
            return content;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static int number(JsonObject form, String name) {
        return form.get(name).getAsInt();
    }

    static Long optional(JsonObject form, String name) {
        return form.has(name) ? form.get(name).getAsLong() : null;
    }

    static Duration millis(JsonObject form, String name) {
        return form.has(name) ? Duration.ofMillis(form.get(name).getAsLong()) : null;
    }

    static Duration retention(JsonObject form) {
        return millis(form, "retentionMs");
    }

    static ZLinkBlobReference reference(JsonObject form) {
        return new ZLinkBlobReference(text(form, "reference"));
    }

    static ZLinkStoreWriteRequest write(JsonObject request) {
        List<ZLinkStoreCondition> conditions = new ArrayList<>();
        for (JsonElement element : request.getAsJsonArray("conditions")) {
            JsonObject form = element.getAsJsonObject();
            ZLinkStoreKey key = new ZLinkStoreKey(text(form, "key"));
            conditions.add(text(form, "kind").equals("missing")
                    ? new ZLinkStoreMissingCondition(key)
                    : new ZLinkStoreVersionCondition(key, new ZLinkStoreVersion(text(form, "expected"))));
        }
        List<ZLinkStoreMutation> mutations = new ArrayList<>();
        for (JsonElement element : request.getAsJsonArray("mutations")) {
            JsonObject form = element.getAsJsonObject();
            ZLinkStoreKey key = new ZLinkStoreKey(text(form, "key"));
            mutations.add(text(form, "kind").equals("delete")
                    ? new ZLinkStoreDelete(key)
                    : new ZLinkStorePut(key, bytes(form), retention(form)));
        }
        return new ZLinkStoreWriteRequest(conditions, mutations);
    }

    // ---- results ---------------------------------------------------------------------------------------------------------------

    static JsonObject told(String kind, Instant expiresAt, Instant storeNow) {
        JsonObject told = new JsonObject();
        told.addProperty("kind", kind);
        time(told, "expiresAt", expiresAt);
        time(told, "storeNow", storeNow);
        return told;
    }

    static void time(JsonObject form, String name, Instant time) {
        if (time != null) {
            form.addProperty(name, time.toEpochMilli());
        }
    }

    static JsonElement packed(byte[] bytes) {
        if (bytes.length < IN_FILE_FROM) {
            return new JsonPrimitive(Base64.getEncoder().encodeToString(bytes));
        }
        try {
            Path file = Files.createTempFile("zlink-interop-bytes-", "");
            Files.write(file, bytes);
            JsonObject form = new JsonObject();
            form.addProperty("file", file.toString());
            return form;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static JsonObject told(String kind, StateEntry<String> entry) {
        JsonObject told = told(kind, entry.expiresAt(), null);
        told.addProperty("json", entry.value());
        told.addProperty("version", entry.version());
        time(told, "createdAt", entry.createdAt());
        time(told, "updatedAt", entry.updatedAt());
        return told;
    }

    static JsonObject told(ZLinkStoreValue value) {
        JsonObject told = new JsonObject();
        told.add("bytes", packed(value.bytes()));
        told.addProperty("version", value.version().value());
        time(told, "expiresAt", value.expiresAt());
        time(told, "storeNow", value.storeNow());
        return told;
    }

    static JsonObject told(ZLinkStoreReadResult result) {
        if (result instanceof ZLinkStoreReadMissing missing) {
            return told("missing", null, missing.storeNow());
        }
        JsonObject told = told("found", null, null);
        told.add("value", told(((ZLinkStoreReadFound) result).value()));
        return told;
    }

    static JsonObject told(ZLinkStoreWriteResult result) {
        if (result instanceof ZLinkStoreWriteConflict conflict) {
            return told("conflict", null, conflict.storeNow());
        }
        ZLinkStoreWriteApplied applied = (ZLinkStoreWriteApplied) result;
        JsonObject told = told("applied", null, applied.storeNow());
        JsonArray versions = new JsonArray();
        applied.putVersions().forEach((key, version) -> {
            JsonObject put = new JsonObject();
            put.addProperty("key", key.value());
            put.addProperty("version", version.value());
            versions.add(put);
        });
        told.add("putVersions", versions);
        return told;
    }

    static JsonObject told(ZLinkStoreScanResult result) {
        if (result instanceof ZLinkStoreScanExpired) {
            return told("expired", null, null);
        }
        ZLinkStoreScanPage page = ((ZLinkStoreScanPageResult) result).value();
        JsonObject told = told("page", null, page.storeNow());
        JsonArray items = new JsonArray();
        for (ZLinkStoreScanItem item : page.items()) {
            JsonObject form = new JsonObject();
            form.addProperty("key", item.key().value());
            form.add("value", told(item.value()));
            items.add(form);
        }
        told.add("items", items);
        if (page.nextCursor() != null) {
            told.addProperty("nextCursor", page.nextCursor().value());
        }
        return told;
    }

    static JsonObject told(ZLinkBlobPutResult result) {
        if (result instanceof ZLinkBlobStored stored) {
            return told("stored", stored.expiresAt(), stored.storeNow());
        }
        return result instanceof ZLinkBlobAlreadyStored already
                ? told("alreadyStored", already.expiresAt(), already.storeNow())
                : told("conflict", null, ((ZLinkBlobConflict) result).storeNow());
    }

    static JsonObject told(ZLinkBlobReadResult result) {
        if (result instanceof ZLinkBlobMissing missing) {
            return told("missing", null, missing.storeNow());
        }
        ZLinkBlobFound found = (ZLinkBlobFound) result;
        JsonObject told = told("found", found.expiresAt(), found.storeNow());
        told.add("bytes", packed(found.bytes()));
        return told;
    }

    static JsonObject told(ZLinkBlobRenewResult result) {
        return result instanceof ZLinkBlobRenewed renewed
                ? told("renewed", renewed.expiresAt(), renewed.storeNow())
                : told("missing", null, ((ZLinkBlobRenewMissing) result).storeNow());
    }
}
