package systems.zlink.store.tests.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import systems.zlink.framework.locationprovider.*;
import systems.zlink.store.ZLinkStoreFailure;

/** The steps that call a store: arguments in, a result as plain fields out, and what is checked of every result. */
final class Calls {
    private static final int MOST_ENCODED = 4 * 1024 * 1024;

    private final JsonObject step;
    private final Values values;
    /** Every version that a put of the scenario got. */
    private final Set<String> versions;

    private final ZLinkStoreCancellation cancellation;

    Calls(JsonObject step, Values values, Set<String> versions) {
        this.step = step;
        this.values = values;
        this.versions = versions;
        this.cancellation = step.has("cancelled") && step.get("cancelled").getAsBoolean() ? () -> true : null;
    }

    static boolean isForBlobs(JsonObject step) {
        return step.keySet().stream().anyMatch(verb -> verb.startsWith("blob"));
    }

    static boolean isCall(JsonObject step) {
        return isForBlobs(step)
                || step.keySet().stream().anyMatch(Set.of("read", "write", "put", "delete", "scan", "scanAll")::contains);
    }

    /** The call that the step describes. */
    Begun.Calling on(Object store) {
        return store instanceof ZLinkLocationStore location ? location(location) : relocation((ZLinkRelocationStore) store);
    }

    private Begun.Calling location(ZLinkLocationStore store) {
        if (step.has("read")) {
            ZLinkStoreKey key = new ZLinkStoreKey(values.text(step.get("read")));
            return () -> begin(() -> store.read(key, cancellation), Calls::read);
        }
        if (step.has("scan") || step.has("scanAll")) {
            boolean all = step.has("scanAll");
            JsonObject scan = step.getAsJsonObject(all ? "scanAll" : "scan");
            String prefix = scan.has("prefix") ? values.text(scan.get("prefix")) : "";
            int limit = scan.has("limit") ? (int) values.number(scan.get("limit")) : 1_000;
            ZLinkStoreScanCursor cursor = scan.has("cursor") ? new ZLinkStoreScanCursor(values.text(scan.get("cursor"))) : null;
            ZLinkStoreScanRequest request = new ZLinkStoreScanRequest(prefix, cursor, limit);
            if (all) {
                return () -> new Begun(null, () -> scanAll(store, request));
            }
            return () -> begin(() -> store.scan(request, cancellation), result -> page(result, request));
        }
        ZLinkStoreWriteRequest request = request();
        return () -> begin(() -> store.write(request, cancellation), result -> written(result, request));
    }

    private Begun.Calling relocation(ZLinkRelocationStore store) {
        String verb = step.keySet().stream().filter(name -> name.startsWith("blob")).findFirst().orElseThrow();
        ZLinkBlobReference reference = new ZLinkBlobReference(values.text(step.get(verb)));
        Duration retention = step.has("retentionMs") ? Duration.ofMillis(values.number(step.get("retentionMs"))) : null;
        switch (verb) {
            case "blobPut" -> {
                byte[] bytes = values.bytes(step.get("bytes"));
                return () -> begin(() -> store.put(reference, bytes, retention, cancellation), Calls::blobPut);
            }
            case "blobRead" -> {
                return () -> begin(() -> store.read(reference, cancellation), Calls::blobRead);
            }
            case "blobRenew" -> {
                return () -> begin(() -> store.renew(reference, retention, cancellation), Calls::blobRenew);
            }
            default -> {
                return () -> begin(() -> store.delete(reference, cancellation), nothing -> fields("deleted"));
            }
        }
    }

    static <T> Begun begin(Callable<CompletionStage<T>> call, Function<T, Map<String, Object>> toFields) throws Exception {
        CompletableFuture<T> stage;
        try {
            stage = call.call().toCompletableFuture();
        } catch (IllegalArgumentException error) {
            return Begun.over(failure(error));
        }
        return new Begun(stage, () -> {
            T result;
            try {
                result = stage.get();
            } catch (CancellationException error) {
                return failure(error);
            } catch (ExecutionException error) {
                return failure(error.getCause());
            }
            return toFields.apply(result);
        });
    }

    static Map<String, Object> failure(Throwable error) {
        Map<String, Object> ruled = ProjectCalls.ruled(error);
        if (ruled != null) {
            return ruled;
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("message", String.valueOf(error.getMessage()));
        if (error instanceof ZLinkStoreFailure failure) {
            fields.put("error", failure.code());
            fields.put("outcome", failure.outcome());
        } else if (error instanceof IllegalArgumentException) {
            fields.put("error", "INVALID_ARGUMENT");
        } else if (error instanceof CancellationException) {
            fields.put("error", "CANCELLED");
        } else if (error instanceof TimeoutException) {
            fields.put("error", "TIMEOUT");
        } else {
            throw new AssertionError("an exception of no kind that is allowed", error);
        }
        return fields;
    }

    // ---- requests --------------------------------------------------------------------------------------------------------------

    private ZLinkStoreWriteRequest request() {
        if (!step.has("write")) {
            // A step that is one mutation; its `times`, if it has one, was its own.
            return new ZLinkStoreWriteRequest(List.of(), List.of(mutation(step, values)));
        }
        JsonObject write = step.getAsJsonObject("write");
        List<ZLinkStoreCondition> conditions = new ArrayList<>();
        for (Values.Element element : list(write, "conditions")) {
            JsonObject form = element.form().getAsJsonObject();
            conditions.add(form.has("missing")
                    ? new ZLinkStoreMissingCondition(new ZLinkStoreKey(element.values().text(form.get("missing"))))
                    : new ZLinkStoreVersionCondition(
                            new ZLinkStoreKey(element.values().text(form.get("version"))),
                            new ZLinkStoreVersion(element.values().text(form.get("expected")))));
        }
        List<ZLinkStoreMutation> mutations = new ArrayList<>();
        for (Values.Element element : list(write, "mutations")) {
            mutations.add(mutation(element.form().getAsJsonObject(), element.values()));
        }
        return new ZLinkStoreWriteRequest(conditions, mutations);
    }

    private List<Values.Element> list(JsonObject write, String name) {
        return values.expand(write.has(name) ? write.getAsJsonArray(name) : new JsonArray());
    }

    private static ZLinkStoreMutation mutation(JsonObject form, Values values) {
        if (form.has("delete")) {
            return new ZLinkStoreDelete(new ZLinkStoreKey(values.text(form.get("delete"))));
        }
        JsonElement retention = form.get("retentionMs");
        return new ZLinkStorePut(
                new ZLinkStoreKey(values.text(form.get("put"))),
                values.bytes(form.get("bytes")),
                retention == null ? null : Duration.ofMillis(values.number(retention)));
    }

    // ---- results ---------------------------------------------------------------------------------------------------------------

    static Map<String, Object> fields(String kind) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("kind", kind);
        return fields;
    }

    private static Map<String, Object> fields(String kind, Instant storeNow) {
        Map<String, Object> fields = fields(kind);
        fields.put("storeNow", storeNow.toEpochMilli());
        return fields;
    }

    private static Map<String, Object> fields(String kind, Instant expiresAt, Instant storeNow) {
        Map<String, Object> fields = fields(kind, storeNow);
        fields.put("expiresAt", expiresAt.toEpochMilli());
        return fields;
    }

    private static Map<String, Object> read(ZLinkStoreReadResult result) {
        if (result instanceof ZLinkStoreReadMissing missing) {
            return fields("missing", missing.storeNow());
        }
        ZLinkStoreValue value = ((ZLinkStoreReadFound) result).value();
        live(value.expiresAt(), value.storeNow());
        Map<String, Object> fields = fields("found", value.storeNow());
        record(fields, value);
        return fields;
    }

    private static void record(Map<String, Object> fields, ZLinkStoreValue value) {
        fields.put("bytes", value.bytes());
        fields.put("version", value.version().value());
        if (value.expiresAt() != null) {
            fields.put("expiresAt", value.expiresAt().toEpochMilli());
        }
    }

    private static void live(Instant expiresAt, Instant storeNow) {
        check(expiresAt == null || expiresAt.isAfter(storeNow), "an expired record was given out");
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new AssertionError(otherwise);
        }
    }

    private Map<String, Object> written(ZLinkStoreWriteResult result, ZLinkStoreWriteRequest request) {
        if (result instanceof ZLinkStoreWriteConflict conflict) {
            return fields("conflict", conflict.storeNow());
        }
        ZLinkStoreWriteApplied applied = (ZLinkStoreWriteApplied) result;
        List<ZLinkStoreKey> puts = new ArrayList<>();
        for (ZLinkStoreMutation mutation : request.mutations()) {
            if (mutation instanceof ZLinkStorePut put) {
                puts.add(put.key());
            }
        }
        check(List.copyOf(applied.putVersions().keySet()).equals(puts), "putVersions are not the puts in their order");
        applied.putVersions().values().forEach(version -> check(versions.add(version.value()), "a version was given out twice"));
        Map<String, Object> fields = fields("applied", applied.storeNow());
        fields.put("keys", puts.stream().map(ZLinkStoreKey::value).toList());
        fields.put("versions", applied.putVersions().values().stream().map(ZLinkStoreVersion::value).toList());
        return fields;
    }

    private static Map<String, Object> page(ZLinkStoreScanResult result, ZLinkStoreScanRequest asked) {
        if (result instanceof ZLinkStoreScanExpired) {
            return fields("expired");
        }
        ZLinkStoreScanPage page = ((ZLinkStoreScanPageResult) result).value();
        check(page.items().size() <= asked.limit(), "more items than the limit");
        check(!page.items().isEmpty() || page.nextCursor() == null && asked.cursor() == null, "an empty page in the middle of a scan");
        long size = 0;
        byte[] before = null;
        List<Object> items = new ArrayList<>();
        for (ZLinkStoreScanItem item : page.items()) {
            byte[] key = item.key().value().getBytes(StandardCharsets.UTF_8);
            check(before == null || Arrays.compareUnsigned(before, key) < 0, "a page out of order");
            before = key;
            check(item.key().value().startsWith(asked.prefix()), "a key without the prefix");
            check(item.value().storeNow().equals(page.storeNow()), "an item with another storeNow than its page");
            if (asked.cursor() == null) {
                live(item.value().expiresAt(), page.storeNow());
            }
            size += key.length + item.value().bytes().length + item.value().version().value().length();
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("key", item.key().value());
            record(fields, item.value());
            items.add(fields);
        }
        check(size <= MOST_ENCODED || items.size() == 1, "a page of " + size + " bytes");
        Map<String, Object> fields = fields("page", page.storeNow());
        fields.put("items", items);
        if (page.nextCursor() != null) {
            fields.put("nextCursor", page.nextCursor().value());
        }
        return fields;
    }

    private Map<String, Object> scanAll(ZLinkLocationStore store, ZLinkStoreScanRequest first) throws Exception {
        List<Object> items = new ArrayList<>();
        Object storeNow = null;
        String last = null;
        ZLinkStoreScanRequest request = first;
        for (long pages = 1; ; pages++) {
            ZLinkStoreScanRequest asked = request;
            Map<String, Object> page = begin(() -> store.scan(asked, cancellation), result -> page(result, asked)).end().call();
            if (!"page".equals(page.get("kind"))) {
                return page;
            }
            storeNow = storeNow == null ? page.get("storeNow") : storeNow;
            for (Object item : (List<?>) page.get("items")) {
                String key = (String) ((Map<?, ?>) item).get("key");
                check(last == null || compare(last, key) < 0, "pages out of order");
                last = key;
                items.add(item);
            }
            if (!page.containsKey("nextCursor")) {
                Map<String, Object> all = fields("all");
                all.put("items", items);
                all.put("pages", pages);
                all.put("storeNow", storeNow);
                return all;
            }
            request = new ZLinkStoreScanRequest(first.prefix(), new ZLinkStoreScanCursor((String) page.get("nextCursor")), first.limit());
        }
    }

    private static int compare(String one, String other) {
        return Arrays.compareUnsigned(one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
    }

    private static Map<String, Object> blobPut(ZLinkBlobPutResult result) {
        if (result instanceof ZLinkBlobStored stored) {
            return fields("stored", stored.expiresAt(), stored.storeNow());
        }
        if (result instanceof ZLinkBlobAlreadyStored already) {
            return fields("alreadyStored", already.expiresAt(), already.storeNow());
        }
        return fields("conflict", ((ZLinkBlobConflict) result).storeNow());
    }

    private static Map<String, Object> blobRead(ZLinkBlobReadResult result) {
        if (result instanceof ZLinkBlobMissing missing) {
            return fields("missing", missing.storeNow());
        }
        ZLinkBlobFound found = (ZLinkBlobFound) result;
        live(found.expiresAt(), found.storeNow());
        Map<String, Object> fields = fields("found", found.expiresAt(), found.storeNow());
        fields.put("bytes", found.bytes());
        return fields;
    }

    private static Map<String, Object> blobRenew(ZLinkBlobRenewResult result) {
        return result instanceof ZLinkBlobRenewed renewed
                ? fields("renewed", renewed.expiresAt(), renewed.storeNow())
                : fields("missing", ((ZLinkBlobRenewMissing) result).storeNow());
    }
}
