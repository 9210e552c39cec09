package systems.zlink.store.tests.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Function;
import systems.zlink.framework.locationprovider.ZLinkLocationStore;
import systems.zlink.framework.locationprovider.ZLinkRelocationStore;
import systems.zlink.project.state.DistributedLocks;
import systems.zlink.project.state.LockLease;
import systems.zlink.project.state.LockOptions;
import systems.zlink.project.state.Project;
import systems.zlink.project.state.ProjectOptions;
import systems.zlink.store.ZLinkStoreStats;
import systems.zlink.store.ZLinkStores;
import systems.zlink.store.internal.NativeStore;
import systems.zlink.store.tests.support.Engine;

/** Runs the steps of one scenario at a place of its own (README, Steps around them). */
final class Run implements AutoCloseable {
    private static final Duration LONGEST = Duration.ofSeconds(120);
    private static final long TIMEOUT_MS = 30_000;
    private static final long UNTIL_MS = 20_000;
    private static final long PAUSE_MS = 3;
    private static final Set<String> LANGUAGE = Set.of("utf16-strings", "signed-numbers", "json-text");

    /** Kinds of stores, and the names of those that need no opening. */
    private static final Set<String> KINDS = Set.of("location", "relocation", "project");

    private static final ExecutorService TOGETHER = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "together");
        thread.setDaemon(true);
        return thread;
    });

    private final Engine.Place place;
    private final Map<String, Object> named = new HashMap<>();
    private final List<Object> opened = new ArrayList<>();
    private final Values values = new Values();
    private final Set<String> versions = ConcurrentHashMap.newKeySet();
    private final ProjectCalls.Grants grants = new ProjectCalls.Grants();
    private final Map<String, DistributedLocks> invocations = new HashMap<>();
    private final Map<String, Begun> started = new HashMap<>();
    private final long deadline = System.nanoTime() + LONGEST.toNanos();

    Run(Engine.Place place) {
        this.place = place;
    }

    @Override
    public void close() {
        opened.forEach(Run::close);
    }

    private static void close(Object store) {
        try {
            ((AutoCloseable) store).close();
        } catch (Exception error) {
            throw new AssertionError("closing threw", error);
        }
    }

    /** Runs steps one after the other; {@code at} says where they stand. */
    void steps(JsonArray steps, String at) throws Exception {
        for (int index = 0; index < steps.size(); index++) {
            JsonObject step = steps.get(index).getAsJsonObject();
            if (!isMeant(step)) {
                continue;
            }
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not done after " + LONGEST);
            }
            try {
                step(step, at + index);
            } catch (AssertionError | IllegalStateException error) {
                if (String.valueOf(error.getMessage()).startsWith("step ")) {
                    throw error;
                }
                throw new AssertionError("step " + at + index + ": " + error.getMessage(), error);
            }
        }
    }

    private boolean isMeant(JsonObject step) {
        JsonElement condition = step.get("if");
        if (condition == null) {
            return true;
        }
        for (JsonElement one : condition instanceof JsonArray all ? all : List.of(condition)) {
            String name = one.getAsString();
            boolean wanted = !name.startsWith("!");
            String capability = wanted ? name : name.substring(1);
            if ((LANGUAGE.contains(capability) || place.engine().capabilities().contains(capability)) != wanted) {
                return false;
            }
        }
        return true;
    }

    private void step(JsonObject step, String at) throws Exception {
        if (step.has("for")) {
            repeat(step, at);
        } else if (step.has("until")) {
            until(step, step.getAsJsonObject("until"));
        } else if (step.has("together")) {
            together(step, step.getAsJsonArray("together"));
        } else if (step.has("check")) {
            Expectations.field(values.eval(step.get("check")), step.get("expect"), values);
        } else if (step.has("start")) {
            started.put(values.text(step.get("start")), calling(step.getAsJsonObject("call"), values).begin());
        } else if (step.has("cancel")) {
            started(step, "cancel").stage().cancel(false);
        } else if (step.has("pending")) {
            if (started(step, "pending").stage().isDone()) {
                throw new AssertionError("it is done already");
            }
        } else if (step.has("locks")) {
            invocation(step);
        } else {
            Map<String, Object> result = step.has("open") ? open(step)
                    : step.has("close") ? closeNamed(values.text(step.get("close")))
                    : step.has("stats") ? stats(named.get(values.text(step.get("stats"))))
                    : step.has("await") ? started(step, "await").end().call()
                    : step.has("withLock") ? withLock(step, at)
                    : call(step, values).call();
            judge(step, result, values);
            save(step, result);
        }
    }

    private void save(JsonObject step, Object result) {
        if (step.has("save")) {
            values.set(values.text(step.get("save")), result);
        }
    }

    /** Compares a call's result with what its step expects. */
    private static void judge(JsonObject step, Map<String, Object> result, Values values) {
        if (step.has("expect")) {
            Expectations.expect(result, step.get("expect"), values);
        } else if (step.has("put") || step.has("delete")) {
            if (!"applied".equals(result.get("kind"))) {
                throw new Expectations.Mismatch("expected applied, got " + Expectations.show(result));
            }
        } else if (result.containsKey("error")) {
            throw new Expectations.Mismatch("it failed: " + Expectations.show(result));
        }
    }

    private Callable<Map<String, Object>> call(JsonObject step, Values values) throws Exception {
        Begun.Calling calling = calling(step, values);
        return () -> calling.begin().end().call();
    }

    private Begun.Calling calling(JsonObject step, Values values) {
        if (ProjectCalls.isCall(step)) {
            ProjectCalls.Opened opened = (ProjectCalls.Opened) store(step, values, "project");
            return new ProjectCalls(step, values, grants).on(opened.project(), locks(step, values, opened));
        }
        if (!Calls.isCall(step)) {
            throw Values.fault("no verb among " + step.keySet());
        }
        return new Calls(step, values, versions).on(store(step, values, Calls.isForBlobs(step) ? "relocation" : "location"));
    }

    /** The store that a step uses; {@code wanted} is the kind, and the name of that which needs no opening. */
    private Object store(JsonObject step, Values values, String wanted) {
        String name = step.has("on") ? values.text(step.get("on")) : wanted;
        if (!named.containsKey(name) && KINDS.contains(name)) {
            keep(name, make(new JsonObject(), name));
        }
        Object store = named.get(name);
        if (store == null) {
            throw Values.fault("no store " + name);
        }
        return store;
    }

    /** The invocation that a step names, or else its store's own. */
    private DistributedLocks locks(JsonObject step, Values values, ProjectCalls.Opened opened) {
        if (!step.has("invocation")) {
            return opened.locks();
        }
        DistributedLocks locks = invocations.get(values.text(step.get("invocation")));
        if (locks == null) {
            throw Values.fault("no invocation " + step.get("invocation"));
        }
        return locks;
    }

    private void invocation(JsonObject step) {
        Project project = ((ProjectCalls.Opened) store(step, values, "project")).project();
        DistributedLocks locks = step.has("deadlineMs")
                ? project.locks(Instant.now().plusMillis(values.number(step.get("deadlineMs"))))
                : project.locks();
        invocations.put(values.text(step.get("locks")), locks);
    }

    private Begun started(JsonObject step, String verb) {
        Begun begun = started.get(values.text(step.get(verb)));
        if (begun == null) {
            throw Values.fault("nothing was started as " + step.get(verb));
        }
        return begun;
    }

    /** What a callback of {@code withLock} throws. */
    private static final class Own extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Own(String message) {
            super(message);
        }
    }

    private Map<String, Object> withLock(JsonObject step, String at) throws Exception {
        DistributedLocks locks = locks(step, values, (ProjectCalls.Opened) store(step, values, "project"));
        String key = values.text(step.get("withLock"));
        LockOptions options = ProjectCalls.options(step, values);
        String returns = step.has("returns") ? values.text(step.get("returns")) : null;
        String thrown = step.has("throws") ? values.text(step.get("throws")) : null;
        List<Throwable> faults = new ArrayList<>();
        Function<LockLease, CompletionStage<String>> work = lease -> {
            try {
                values.set("lease", grants.granted(lease));
                steps(step.has("steps") ? step.getAsJsonArray("steps") : new JsonArray(), at + ".");
            } catch (Exception | AssertionError fault) {
                faults.add(fault);
            }
            if (thrown != null) {
                throw new Own(thrown);
            }
            return CompletableFuture.completedStage(returns);
        };
        Map<String, Object> result;
        try {
            result = Calls.begin(() -> (options == null ? locks.withLock(key, work) : locks.withLock(key, options, work)).handle(Run::done),
                    fields -> fields).end().call();
        } finally {
            if (!faults.isEmpty()) {
                throw new AssertionError(faults.get(0).getMessage(), faults.get(0));
            }
        }
        return result;
    }

    private static Map<String, Object> done(String value, Throwable failure) {
        if (failure == null || failure instanceof Own) {
            Map<String, Object> fields = Calls.fields(failure == null ? "done" : "failed");
            String said = failure == null ? value : failure.getMessage();
            if (said != null) {
                fields.put("value", said);
            }
            return fields;
        }
        return Calls.failure(failure);
    }

    private void keep(String name, Object store) {
        opened.add(store);
        named.put(name, store);
    }

    private Object make(JsonObject step, String kind) {
        Duration timeout = Duration.ofMillis(step.has("timeoutMs") ? values.number(step.get("timeoutMs")) : TIMEOUT_MS);
        if (kind.equals("project")) {
            String workspace = step.has("exactWorkspace") ? values.text(step.get("exactWorkspace"))
                    : place.inFront() + text(step, "workspace", "w");
            String url = text(step, "url", place.projectUrl());
            Project project = new Project(new ProjectOptions(url, workspace, text(step, "project", "p"), timeout));
            return new ProjectCalls.Opened(project, project.locks());
        }
        String prefix = step.has("exactPrefix") ? values.text(step.get("exactPrefix"))
                : place.inFront() + text(step, "prefix", kind.substring(0, 1));
        return kind.equals("relocation") ? place.relocation(prefix, timeout) : place.location(prefix, timeout);
    }

    private String text(JsonObject step, String field, String otherwise) {
        return step.has(field) ? values.text(step.get(field)) : otherwise;
    }

    private Map<String, Object> open(JsonObject step) {
        String kind = step.has("store") ? step.get("store").getAsString() : "location";
        try {
            keep(values.text(step.get("open")), make(step, kind));
            return Calls.fields("opened");
        } catch (RuntimeException error) {
            return Calls.failure(error);
        }
    }

    private Map<String, Object> closeNamed(String name) {
        close(named.get(name));
        return Calls.fields("closed");
    }

    private static Map<String, Object> stats(Object store) {
        ZLinkStoreStats stats = store instanceof ProjectCalls.Opened opened ? opened.project().stats()
                // Those in memory have nothing in front of them.
                : store instanceof NativeStore unnamed ? unnamed.stats()
                : store instanceof ZLinkLocationStore location ? ZLinkStores.stats(location)
                : ZLinkStores.stats((ZLinkRelocationStore) store);
        Map<String, Object> fields = Calls.fields("stats");
        fields.put("operations", stats.operations().values().stream().mapToLong(Long::longValue).sum());
        return fields;
    }

    private void repeat(JsonObject step, String at) throws Exception {
        String name = step.get("for").getAsString();
        List<Object> all = new ArrayList<>();
        if (step.has("in")) {
            step.getAsJsonArray("in").forEach(all::add);
        } else {
            long from = step.has("from") ? values.number(step.get("from")) : 0;
            for (long number = from; number < from + values.number(step.get("times")); number++) {
                all.add(number);
            }
        }
        for (int index = 0; index < all.size(); index++) {
            values.set(name, all.get(index));
            steps(step.getAsJsonArray("steps"), at + "[" + name + " #" + index + "].");
        }
    }

    private void until(JsonObject step, JsonObject inner) throws Exception {
        long within = step.has("withinMs") ? values.number(step.get("withinMs")) : UNTIL_MS;
        long end = System.nanoTime() + within * 1_000_000;
        while (true) {
            Map<String, Object> result = call(inner, values).call();
            try {
                judge(inner, result, values);
                save(inner, result);
                return;
            } catch (Expectations.Mismatch missed) {
                if (step.has("meanwhile")) {
                    Expectations.expect(result, step.get("meanwhile"), values);
                }
                if (System.nanoTime() > end) {
                    throw new AssertionError("not within " + within + " ms: " + missed.getMessage());
                }
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    private void together(JsonObject step, JsonArray steps) throws Exception {
        List<Values.Element> elements = values.copy().expand(steps).stream()
                .filter(element -> isMeant(element.form().getAsJsonObject())).toList();
        List<Callable<Map<String, Object>>> calls = new ArrayList<>();
        for (Values.Element element : elements) {
            calls.add(call(element.form().getAsJsonObject(), element.values()));
        }
        List<Future<Map<String, Object>>> running = calls.stream().map(TOGETHER::submit).toList();
        Map<String, Long> counts = new HashMap<>();
        for (int index = 0; index < running.size(); index++) {
            Map<String, Object> result = running.get(index).get();
            JsonObject form = elements.get(index).form().getAsJsonObject();
            if (form.has("expect")) {
                judge(form, result, elements.get(index).values());
            }
            String kind = (String) result.getOrDefault("kind", result.get("error"));
            counts.merge(kind, 1L, Long::sum);
            if (step.has("save") && step.getAsJsonObject("save").has(kind)) {
                values.set(step.getAsJsonObject("save").get(kind).getAsString(), result);
            }
        }
        if (step.has("expect")) {
            JsonObject expected = step.getAsJsonObject("expect");
            for (Map.Entry<String, JsonElement> entry : expected.entrySet()) {
                Expectations.field(counts.getOrDefault(entry.getKey(), 0L), entry.getValue(), values);
            }
            if (!expected.keySet().containsAll(counts.keySet())) {
                throw new AssertionError("unexpected results: " + counts);
            }
        }
    }
}
