package systems.zlink.store.kotlin.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonObject
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import systems.zlink.store.kotlin.DistributedLocks
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.LockLease
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.RelocationStore
import systems.zlink.store.kotlin.Store
import systems.zlink.store.kotlin.StoreFailure
import systems.zlink.store.kotlin.support.Place

/** Runs the steps of one scenario at a place of its own (README, Steps around them). */
class Run(private val place: Place) : AutoCloseable {
    /** A call that goes on. */
    private class Started(val job: Job, val result: CompletableDeferred<Fields>)

    /** What a block of `withLock` throws. */
    private class Own(message: String) : RuntimeException(message)

    private val scope = CoroutineScope(Dispatchers.Default)
    private val named = mutableMapOf<String, Store>()
    private val opened = mutableListOf<Store>()
    private val ownLocks = mutableMapOf<Project, DistributedLocks>()
    private val values = Values()
    private val versions: MutableSet<String> = ConcurrentHashMap.newKeySet()
    private val grants = Grants()
    private val invocations = mutableMapOf<String, DistributedLocks>()
    private val started = mutableMapOf<String, Started>()

    override fun close() = opened.forEach(Store::close)

    /** Runs steps one after the other; [at] says where they stand. */
    suspend fun steps(steps: JsonArray, at: String = "") {
        steps.map { it.asJsonObject }.forEachIndexed { index, form ->
            if (isMeant(form)) {
                try {
                    step(form, "$at$index")
                } catch (error: Throwable) {
                    if (error !is AssertionError && error !is IllegalStateException || error.message.orEmpty().startsWith("step ")) {
                        throw error
                    }
                    throw AssertionError("step $at$index: ${error.message}", error)
                }
            }
        }
    }

    private fun isMeant(step: JsonObject): Boolean {
        val condition = step["if"] ?: return true
        return (condition as? JsonArray ?: listOf(condition)).map { it.asString }.all { name ->
            val capability = name.removePrefix("!")
            (capability in LANGUAGE || capability in place.engine.capabilities) == (name == capability)
        }
    }

    private suspend fun step(step: JsonObject, at: String) {
        when {
            step.has("for") -> repeat(step, at)
            step.has("until") -> until(step, step.getAsJsonObject("until"))
            step.has("together") -> together(step)
            step.has("check") -> Expectations.field(values.eval(step["check"]), step["expect"], values)
            step.has("start") -> started[values.text(step["start"])] = start(calling(step.getAsJsonObject("call"), values))
            step.has("cancel") -> started(step, "cancel").job.cancel()
            step.has("pending") -> verify(!started(step, "pending").result.isCompleted) { "it is done already" }
            step.has("locks") -> invocation(step)
            else -> {
                val result = when {
                    step.has("open") -> open(step)
                    step.has("close") -> named.getValue(values.text(step["close"])).shutdown().let { fields("closed") }
                    step.has("stats") ->
                        fields("stats", "operations" to named.getValue(values.text(step["stats"])).stats().operations.values.sum())
                    step.has("await") -> started(step, "await").result.await()
                    step.has("withLock") -> withLock(step, at)
                    else -> call(step, values)
                }
                judge(step, result, values)
                save(step, result)
            }
        }
    }

    private fun save(step: JsonObject, result: Fields) {
        step["save"]?.let { values[values.text(it)] = result }
    }

    /** Compares a call's result with what its step expects. */
    private fun judge(step: JsonObject, result: Fields, values: Values) {
        when {
            step.has("expect") -> Expectations.expect(result, step["expect"], values)
            step.has("put") || step.has("delete") ->
                if (result["kind"] != "applied") throw Mismatch("expected applied, got ${Expectations.show(result)}")
            "error" in result -> throw Mismatch("it failed: ${Expectations.show(result)}")
        }
    }

    /** Begins a call before this returns, so that calls reach the engine in their order. */
    private fun start(call: Call, parent: Job = Job()): Started {
        val result = CompletableDeferred<Fields>()
        val job = scope.launch(parent, CoroutineStart.UNDISPATCHED) {
            try {
                result.complete(resultOf(call))
            } catch (fault: Throwable) {
                result.completeExceptionally(fault)
            }
        }
        return Started(job, result)
    }

    private suspend fun call(step: JsonObject, values: Values): Fields = end(step, calling(step, values))

    private suspend fun end(step: JsonObject, call: Call): Fields =
        if (step.has("cancelled")) start(call, Job().apply { cancel() }).result.await() else resultOf(call)

    private fun calling(step: JsonObject, values: Values): Call = when {
        ProjectCalls.isCall(step) -> {
            val project = store(step, values, "project") as Project
            val calls = ProjectCalls(step, values, grants)
            if (ProjectCalls.isForState(step)) calls.on(project.state) else calls.on(locks(step, values, project))
        }
        Calls.isForBlobs(step) -> Calls(step, values, versions).on(store(step, values, "relocation") as RelocationStore)
        Calls.isCall(step) -> Calls(step, values, versions).on(store(step, values, "location") as LocationStore)
        else -> fault("no verb among ${step.keySet()}")
    }

    /** The store that a step uses; [wanted] is the kind, and the name of that which needs no opening. */
    private fun store(step: JsonObject, values: Values, wanted: String): Store {
        val name = step["on"]?.let(values::text) ?: wanted
        if (name !in named && name in KINDS) {
            keep(name, make(JsonObject(), name))
        }
        return named[name] ?: fault("no store $name")
    }

    /** The invocation that a step names, or else its store's own. */
    private fun locks(step: JsonObject, values: Values, project: Project): DistributedLocks =
        if (step.has("invocation")) {
            invocations[values.text(step["invocation"])] ?: fault("no invocation ${step["invocation"]}")
        } else {
            ownLocks.getOrPut(project) { project.locks() }
        }

    private fun invocation(step: JsonObject) {
        val project = store(step, values, "project") as Project
        invocations[values.text(step["locks"])] = project.locks(step["deadlineMs"]?.let(values::number)?.milliseconds)
    }

    private fun started(step: JsonObject, verb: String): Started =
        started[values.text(step[verb])] ?: fault("nothing was started as ${step[verb]}")

    private suspend fun withLock(step: JsonObject, at: String): Fields {
        val locks = locks(step, values, store(step, values, "project") as Project)
        val key = values.text(step["withLock"])
        val options = LockOptions(step, values)
        val returns = step["returns"]?.let(values::text)
        val thrown = step["throws"]?.let(values::text)
        var fault: Throwable? = null
        val block: suspend (LockLease) -> String? = { lease ->
            try {
                values["lease"] = grants.granted(lease)
                steps(step["steps"]?.asJsonArray ?: JsonArray(), "$at.")
            } catch (error: Throwable) {
                fault = error
            }
            thrown?.let { throw Own(it) }
            returns
        }
        val result = resultOf {
            try {
                fields("done", "value" to locks.withLock(key, options.namespace, options.wait, options.lease, block))
            } catch (own: Own) {
                fields("failed", "value" to own.message)
            }
        }
        fault?.let { throw AssertionError(it.message, it) }
        return result
    }

    private fun keep(name: String, store: Store) {
        opened += store
        named[name] = store
    }

    private fun make(step: JsonObject, kind: String): Store {
        val text = { field: String, otherwise: String -> step[field]?.let(values::text) ?: otherwise }
        val timeout = (step["timeoutMs"]?.let(values::number) ?: TIMEOUT_MS).milliseconds
        if (kind == "project") {
            val workspace = text("exactWorkspace", place.inFront + text("workspace", "w"))
            return Project.open(text("url", place.url), workspace, text("project", "p"), timeout)
        }
        val prefix = text("exactPrefix", place.inFront + text("prefix", kind.take(1)))
        return if (kind == "relocation") {
            RelocationStore.open(place.url, prefix, timeout)
        } else {
            LocationStore.open(place.url, prefix, timeout)
        }
    }

    private fun open(step: JsonObject): Fields = try {
        keep(values.text(step["open"]), make(step, step["store"]?.asString ?: "location"))
        fields("opened")
    } catch (error: RuntimeException) {
        if (error !is StoreFailure) throw error
        failure(error)
    }

    private suspend fun repeat(step: JsonObject, at: String) {
        val name = step["for"].asString
        val all: List<Any> = step["in"]?.asJsonArray?.toList() ?: run {
            val from = step["from"]?.let(values::number) ?: 0
            (from until from + values.number(step["times"])).toList()
        }
        all.forEachIndexed { index, value ->
            values[name] = value
            steps(step.getAsJsonArray("steps"), "$at[$name #$index].")
        }
    }

    private suspend fun until(step: JsonObject, inner: JsonObject) {
        val within = (step["withinMs"]?.let(values::number) ?: UNTIL_MS).milliseconds
        val end = TimeSource.Monotonic.markNow() + within
        while (true) {
            val result = call(inner, values)
            try {
                judge(inner, result, values)
                return save(inner, result)
            } catch (missed: Mismatch) {
                step["meanwhile"]?.let { Expectations.expect(result, it, values) }
                verify(!end.hasPassedNow()) { "not within $within: ${missed.message}" }
            }
            delay(PAUSE)
        }
    }

    private suspend fun together(step: JsonObject) = coroutineScope {
        val elements = values.copy().expand(step.getAsJsonArray("together")).filter { isMeant(it.form.asJsonObject) }
        val calls = elements.map { calling(it.form.asJsonObject, it.values) }
        val results = elements.zip(calls) { element, call ->
            async(Dispatchers.Default) { end(element.form.asJsonObject, call) }
        }.awaitAll()
        val counts = mutableMapOf<String, Long>()
        elements.zip(results) { element, result ->
            val form = element.form.asJsonObject
            if (form.has("expect")) {
                judge(form, result, element.values)
            }
            save(form, result)
            val kind = (result["kind"] ?: result["error"]) as String
            counts.merge(kind, 1, Long::plus)
            step["save"]?.asJsonObject?.get(kind)?.let { values[it.asString] = result }
        }
        step["expect"]?.asJsonObject?.let { expected ->
            expected.entrySet().forEach { (kind, matcher) -> Expectations.field(counts[kind] ?: 0L, matcher, values) }
            verify(expected.keySet().containsAll(counts.keys)) { "unexpected results: $counts" }
        }
    }

    companion object {
        val LONGEST = 120.seconds
        private const val TIMEOUT_MS = 30_000L
        private const val UNTIL_MS = 20_000L
        private val PAUSE = 3.milliseconds
        private val LANGUAGE = setOf("utf16-strings", "signed-numbers", "json-text")

        /** Kinds of stores, and the names of those that need no opening. */
        private val KINDS = setOf("location", "relocation", "project")
    }
}
