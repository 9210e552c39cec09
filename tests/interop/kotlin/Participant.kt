/** Kotlin as a participant (../README.md). */
package interop

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import com.google.gson.JsonParser
import com.google.gson.JsonPrimitive
import java.nio.file.Files
import java.nio.file.Path
import java.util.Base64
import java.util.concurrent.ConcurrentHashMap
import kotlin.system.exitProcess
import kotlin.time.Clock
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.Instant
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch
import systems.zlink.store.kotlin.*

// Long lines are slow to read.
private const val IN_FILE_FROM = 64 * 1024

private val stores = ConcurrentHashMap<Int, Store>()

/** The locks of each invocation, by its number; and leases, by theirs. */
private val invocations = ConcurrentHashMap<Int, Pair<Project, DistributedLocks>>()
private val leases = ConcurrentHashMap<Int, LockLease>()

/** The requests under way. */
private val jobs = ConcurrentHashMap<Int, Job>()

fun main() {
    while (true) {
        val request = JsonParser.parseString(readlnOrNull() ?: break).asJsonObject
        val id = request.number("id")
        if (request.text("do") == "cancel") {
            jobs[request.number("request")]?.cancel()
            answer(id, "result", JsonObject())
            continue
        }
        val job = Job()
        jobs[id] = job
        if (request.has("cancelled")) job.cancel()
        // Begun before the next request is read.
        CoroutineScope(Dispatchers.Default + job).launch(start = CoroutineStart.UNDISPATCHED) { answered(id, request) }
    }
}

private suspend fun answered(id: Int, request: JsonObject) {
    val (name, how) = try {
        "result" to obey(request)
    } catch (_: StoreException.StateConflict) {
        "result" to told("conflict")
    } catch (_: StoreException.RateLimit) {
        "result" to told("limitReached")
    } catch (_: StoreException.LockLost) {
        "result" to told("lost")
    } catch (error: Exception) {
        "error" to failed(error)
    }
    jobs.remove(id)
    answer(id, name, how)
}

private fun answer(id: Int, name: String, how: JsonObject) {
    val line = JsonObject().apply {
        addProperty("id", id)
        add(name, how)
    }
    // One line each, whatever threads answer.
    synchronized(jobs) { println(line) }
}

private fun failed(error: Exception) = JsonObject().apply {
    addProperty("message", error.message.orEmpty())
    when (error) {
        is StoreFailure -> {
            addProperty("code", error.code)
            addProperty("outcome", if (error.outcome == Outcome.UNKNOWN) "unknown" else "notApplied")
            (error as? InvalidArgumentException)?.let { addProperty("argument", it.argument) }
        }
        is CancellationException -> addProperty("code", "CANCELLED")
        else -> {
            error.printStackTrace()
            exitProcess(1)
        }
    }
}

private suspend fun obey(request: JsonObject): JsonObject {
    val number = request["store"].asInt
    val verb = request.text("do")
    if (verb == "open") {
        stores[number] = opened(request)
        return JsonObject()
    }
    val store = stores.getValue(number)
    if (verb == "close") {
        store.shutdown()
        return JsonObject()
    }
    return when (store) {
        is LocationStore -> obey(store, verb, request)
        is RelocationStore -> obey(store, verb, request)
        is Project -> if (verb.startsWith("state")) state(store, verb, request) else lock(store, verb, request)
    }
}

private fun opened(request: JsonObject): Store {
    val address = request.text("address")
    val url = if (request.text("engine") == "file") "file:$address" else address
    val timeout = request.milliseconds("operationTimeoutMs")
    return when (request.text("kind")) {
        "location" -> LocationStore.open(url, request.text("keyPrefix"), timeout)
        "relocation" -> RelocationStore.open(url, request.text("keyPrefix"), timeout)
        else -> Project.open(url, request.text("workspace"), request.text("project"), timeout)
    }
}

private suspend fun obey(store: LocationStore, verb: String, request: JsonObject): JsonObject = when (verb) {
    "read" -> when (val result = store.read(request.text("key"))) {
        is ReadResult.Missing -> told("missing", "storeNow" to result.storeNow)
        is ReadResult.Found -> told("found", "value" to told(result.value))
    }
    "write" -> when (val result = store.write(request.all("conditions", ::condition), request.all("mutations", ::mutation))) {
        is WriteResult.Conflict -> told("conflict", "storeNow" to result.storeNow)
        is WriteResult.Applied -> {
            val versions = result.versions.map { (key, version) -> told(null, "key" to key, "version" to version) }
            told("applied", "putVersions" to versions, "storeNow" to result.storeNow)
        }
    }
    "scan" -> when (val result = store.scan(request.text("prefix"), request["cursor"]?.asString, request.number("limit"))) {
        is ScanResult.Expired -> told("expired")
        is ScanResult.Page -> {
            val items = result.items.map { told(null, "key" to it.key, "value" to told(it.value)) }
            told("page", "items" to items, "nextCursor" to result.nextCursor, "storeNow" to result.storeNow)
        }
    }
    else -> error(verb)
}

private suspend fun obey(store: RelocationStore, verb: String, request: JsonObject): JsonObject {
    val reference = request.text("reference")
    val retention = request.milliseconds("retentionMs")
    return when (verb) {
        "put" -> when (val result = store.put(reference, request.bytes("bytes"), retention!!)) {
            is BlobPutResult.Stored -> told("stored", "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
            is BlobPutResult.AlreadyStored -> told("alreadyStored", "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
            is BlobPutResult.Conflict -> told("conflict", "storeNow" to result.storeNow)
        }
        "blobRead" -> when (val result = store.read(reference)) {
            is BlobReadResult.Missing -> told("missing", "storeNow" to result.storeNow)
            is BlobReadResult.Found ->
                told("found", "bytes" to result.bytes, "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
        }
        "renew" -> when (val result = store.renew(reference, retention!!)) {
            is BlobRenewResult.Missing -> told("missing", "storeNow" to result.storeNow)
            is BlobRenewResult.Renewed -> told("renewed", "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
        }
        "blobDelete" -> JsonObject().also { store.delete(reference) }
        else -> error(verb)
    }
}

private suspend fun state(project: Project, verb: String, request: JsonObject): JsonObject {
    val namespace = project.state.namespace(request.text("namespace"))
    val key = request.text("key")
    val expected = request["expectedVersion"]?.asLong
    return when (verb) {
        "stateGet" -> namespace.get(key)?.let { told("entry", it) } ?: told("missing")
        "stateSet" -> told("stored", namespace.set(key, request.text("json"), expected, request["ttlSeconds"]?.asLong?.seconds))
        "stateDelete" -> told(if (namespace.delete(key, expected)) "deleted" else "missing")
        else -> error(verb)
    }
}

private suspend fun lock(project: Project, verb: String, request: JsonObject): JsonObject {
    val number = request.number("lease")
    val leaseTime = request.milliseconds("leaseMs")
    return when (verb) {
        "lockAcquire" -> locks(project, request).acquire(
            request.text("key"), request["namespace"]?.asString, request.milliseconds("waitMs"), leaseTime,
        )?.let { keep(number, it) } ?: told("unavailable")
        "lockAttach" -> keep(number, locks(project, request).attach(request.text("leaseId")))
        "lockRenew" -> told("renewed", "expiresAt" to leases.getValue(number).renew(leaseTime))
        "lockRelease" -> told("released").also { leases.getValue(number).release() }
        else -> error(verb)
    }
}

/** The locks of an invocation, which begins with the first request that names it; one of a project opened anew does so too. */
private fun locks(project: Project, request: JsonObject): DistributedLocks =
    invocations.compute(request.number("invocation")) { _, known ->
        known?.takeIf { it.first === project } ?: run {
            val within = request["deadline"]?.let { Instant.fromEpochMilliseconds(it.asLong) - Clock.System.now() }
            project to project.locks(within?.coerceAtLeast(Duration.ZERO))
        }
    }!!.second

private fun keep(number: Int, lease: LockLease): JsonObject {
    leases[number] = lease
    return told(
        "lease", "id" to lease.id, "key" to lease.key, "namespace" to lease.namespace, "fencingToken" to lease.fencingToken,
        "expiresAt" to lease.expiresAt,
    )
}

// ---- requests ------------------------------------------------------------------------------------------------------------------

private fun JsonObject.text(name: String): String = this[name].asString

private fun JsonObject.number(name: String): Int = this[name].asInt

private fun JsonObject.milliseconds(name: String): Duration? = this[name]?.asLong?.milliseconds

private fun <T> JsonObject.all(name: String, each: (JsonObject) -> T): List<T> = getAsJsonArray(name).map { each(it.asJsonObject) }

private fun JsonObject.bytes(name: String): ByteArray = when (val form = this[name]) {
    is JsonPrimitive -> Base64.getDecoder().decode(form.asString)
    else -> Path.of(form.asJsonObject.text("file")).let { file -> Files.readAllBytes(file).also { Files.delete(file) } }
}

private fun condition(form: JsonObject): Condition =
    if (form.text("kind") == "missing") Condition.Missing(form.text("key")) else Condition.Version(form.text("key"), form.text("expected"))

private fun mutation(form: JsonObject): Mutation =
    if (form.text("kind") == "delete") {
        Mutation.Delete(form.text("key"))
    } else {
        Mutation.Put(form.text("key"), form.bytes("bytes"), form.milliseconds("retentionMs"))
    }

// ---- results -------------------------------------------------------------------------------------------------------------------

private fun told(kind: String?, vararg fields: Pair<String, Any?>): JsonObject = JsonObject().apply {
    kind?.let { addProperty("kind", it) }
    fields.forEach { (name, value) -> value?.let { add(name, form(it)) } }
}

private fun form(value: Any): JsonElement = when (value) {
    is JsonElement -> value
    is String -> JsonPrimitive(value)
    is Number -> JsonPrimitive(value)
    is Instant -> JsonPrimitive(value.toEpochMilliseconds())
    is ByteArray -> packed(value)
    is List<*> -> JsonArray().apply { value.forEach { add(it as JsonElement) } }
    else -> error("$value has no form")
}

private fun packed(bytes: ByteArray): JsonElement =
    if (bytes.size < IN_FILE_FROM) {
        JsonPrimitive(Base64.getEncoder().encodeToString(bytes))
    } else {
        JsonPrimitive("${Files.write(Files.createTempFile("zlink-interop-bytes-", ""), bytes)}").let { told(null, "file" to it) }
    }

private fun told(value: StoredValue): JsonObject = told(
    null, "bytes" to value.bytes, "version" to value.version, "expiresAt" to value.expiresAt, "storeNow" to value.storeNow,
)

private fun told(kind: String, entry: StateEntry): JsonObject = told(
    kind, "json" to entry.json, "version" to entry.version, "createdAt" to entry.createdAt, "updatedAt" to entry.updatedAt,
    "expiresAt" to entry.expiresAt,
)
