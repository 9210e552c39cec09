package systems.zlink.store.tests.conformance;

import com.google.gson.JsonObject;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import systems.zlink.framework.locationprovider.ZLinkStoreCancellation;
import systems.zlink.project.state.*;

/** The steps that call a project's state and locks. */
final class ProjectCalls {
    private static final Set<String> LOCKS = Set.of("lockAcquire", "lockAttach", "lockRenew", "lockRelease", "lease");
    private static final Set<String> STATE = Set.of("stateNamespace", "stateGet", "stateSet", "stateDelete");

    /** A project as a step names it, with an invocation of its own. */
    record Opened(Project project, DistributedLocks locks) implements AutoCloseable {
        @Override
        public void close() {
            project.close();
        }
    }

    /** The ids of all grants of a scenario. */
    static final class Grants {
        private final Set<String> ids = ConcurrentHashMap.newKeySet();

        /** A lease that was just acquired, as a result. */
        Map<String, Object> granted(LockLease lease) {
            if (!ids.add(lease.id())) {
                throw new AssertionError("two grants have the same id");
            }
            return fields(lease);
        }
    }

    private final JsonObject step;
    private final Values values;
    private final Grants grants;
    private final ZLinkStoreCancellation cancellation;

    ProjectCalls(JsonObject step, Values values, Grants grants) {
        this.step = step;
        this.values = values;
        this.grants = grants;
        this.cancellation = step.has("cancelled") && step.get("cancelled").getAsBoolean() ? () -> true : null;
    }

    static boolean isCall(JsonObject step) {
        return step.keySet().stream().anyMatch(verb -> LOCKS.contains(verb) || STATE.contains(verb));
    }

    /** The call that the step describes. */
    Begun.Calling on(Project project, DistributedLocks locks) {
        return step.keySet().stream().anyMatch(STATE::contains) ? state(project.state()) : locks(locks);
    }

    private Begun.Calling state(ProjectState state) {
        if (step.has("stateNamespace")) {
            String name = values.text(step.get("stateNamespace"));
            return () -> Calls.begin(() -> CompletableFuture.completedStage(state.namespace(name)), namespace -> {
                Map<String, Object> fields = Calls.fields("namespace");
                fields.put("name", namespace.name());
                return fields;
            });
        }
        String name = step.has("namespace") ? values.text(step.get("namespace")) : "ns";
        if (step.has("stateGet")) {
            String key = values.text(step.get("stateGet"));
            return () -> Calls.begin(() -> state.namespace(name).get(key, cancellation), entry ->
                    entry.map(found -> fields("entry", found)).orElseGet(() -> Calls.fields("missing")));
        }
        Long expectedVersion = optional("expectedVersion");
        if (step.has("stateSet")) {
            String key = values.text(step.get("stateSet"));
            String json = values.text(step.get("json"));
            Long ttl = optional("ttlSeconds");
            StateWriteOptions options = new StateWriteOptions(expectedVersion, ttl == null ? null : Duration.ofSeconds(ttl));
            return () -> Calls.begin(
                    () -> state.namespace(name).set(key, json, options, cancellation), entry -> fields("stored", entry));
        }
        String key = values.text(step.get("stateDelete"));
        return () -> Calls.begin(
                () -> state.namespace(name).delete(key, new StateDeleteOptions(expectedVersion), cancellation),
                deleted -> Calls.fields(deleted ? "deleted" : "missing"));
    }

    private Begun.Calling locks(DistributedLocks locks) {
        if (step.has("lockAcquire")) {
            String key = values.text(step.get("lockAcquire"));
            LockOptions options = options(step, values);
            return () -> {
                long began = System.nanoTime();
                Begun begun = Calls.begin(() -> locks.acquire(key, options, cancellation), this::acquired);
                CompletableFuture<Long> ended = begun.stage().handle((result, failure) -> System.nanoTime());
                return new Begun(begun.stage(), () -> {
                    Map<String, Object> result = begun.end().call();
                    // Whole milliseconds, upwards: a timer counts no finer.
                    result.put("tookMs", (ended.get() - began + 999_999) / 1_000_000);
                    return result;
                });
            };
        }
        if (step.has("lockAttach")) {
            String id = values.text(step.get("lockAttach"));
            return () -> Calls.begin(() -> locks.attach(id, cancellation), ProjectCalls::fields);
        }
        if (step.has("lockRenew")) {
            LockLease lease = lease("lockRenew");
            Long leaseMs = optional("leaseMs");
            Duration leaseTime = leaseMs == null ? null : Duration.ofMillis(leaseMs);
            return () -> Calls.begin(() -> lease.renew(leaseTime, cancellation), nothing -> {
                Map<String, Object> fields = Calls.fields("renewed");
                fields.put("expiresAt", lease.expiresAt().toEpochMilli());
                return fields;
            });
        }
        if (step.has("lockRelease")) {
            LockLease lease = lease("lockRelease");
            return () -> Calls.begin(() -> lease.release(cancellation), nothing -> Calls.fields("released"));
        }
        LockLease lease = lease("lease");
        return () -> Begun.over(fields(lease));
    }

    private Map<String, Object> acquired(Optional<LockLease> lease) {
        return lease.map(grants::granted).orElseGet(() -> Calls.fields("unavailable"));
    }

    /** The lease object of a saved result. */
    private LockLease lease(String verb) {
        return (LockLease) values.named(values.text(step.get(verb)) + ".object");
    }

    private Long optional(String field) {
        return optional(step, values, field);
    }

    private static Long optional(JsonObject step, Values values, String field) {
        return step.has(field) ? (Long) values.number(step.get(field)) : null;
    }

    /** {@code null} if the step has none. */
    static LockOptions options(JsonObject step, Values values) {
        String namespace = step.has("namespace") ? values.text(step.get("namespace")) : null;
        Long waitMs = optional(step, values, "waitMs");
        Long leaseMs = optional(step, values, "leaseMs");
        if (namespace == null && waitMs == null && leaseMs == null) {
            return null;
        }
        return new LockOptions(
                namespace, waitMs == null ? null : Duration.ofMillis(waitMs), leaseMs == null ? null : Duration.ofMillis(leaseMs));
    }

    private static Map<String, Object> fields(LockLease lease) {
        Map<String, Object> fields = Calls.fields("lease");
        fields.put("id", lease.id());
        fields.put("key", lease.key());
        fields.put("namespace", lease.namespace());
        fields.put("fencingToken", lease.fencingToken());
        fields.put("expiresAt", lease.expiresAt().toEpochMilli());
        fields.put("object", lease);
        return fields;
    }

    private static Map<String, Object> fields(String kind, StateEntry<String> entry) {
        Instant expiresAt = entry.expiresAt();
        Calls.check(entry.version() >= 1, "an entry without a version");
        Calls.check(!entry.createdAt().isAfter(entry.updatedAt()), "an entry written before it was created");
        Calls.check(expiresAt == null || expiresAt.isAfter(entry.updatedAt()), "an entry that expires before it is written");
        Map<String, Object> fields = Calls.fields(kind);
        fields.put("json", entry.value());
        fields.put("version", entry.version());
        fields.put("createdAt", entry.createdAt().toEpochMilli());
        fields.put("updatedAt", entry.updatedAt().toEpochMilli());
        if (expiresAt != null) {
            fields.put("expiresAt", expiresAt.toEpochMilli());
        }
        return fields;
    }

    /** The result for an exception that the rules of state and locks ask for; {@code null} for any other. */
    static Map<String, Object> ruled(Throwable failure) {
        return failure instanceof StateConflictException ? Calls.fields("conflict")
                : failure instanceof RateLimitException ? Calls.fields("limitReached")
                : failure instanceof LockLostException ? Calls.fields("lost")
                : failure instanceof LockUnavailableException ? Calls.fields("unavailable")
                : null;
    }
}
