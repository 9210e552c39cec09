package systems.zlink.store.kotlin.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import kotlin.coroutines.cancellation.CancellationException
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Instant
import systems.zlink.store.kotlin.BlobPutResult
import systems.zlink.store.kotlin.BlobReadResult
import systems.zlink.store.kotlin.BlobRenewResult
import systems.zlink.store.kotlin.Condition
import systems.zlink.store.kotlin.InvalidArgumentException
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Mutation
import systems.zlink.store.kotlin.Outcome
import systems.zlink.store.kotlin.ReadResult
import systems.zlink.store.kotlin.RelocationStore
import systems.zlink.store.kotlin.ScanResult
import systems.zlink.store.kotlin.StoreException
import systems.zlink.store.kotlin.StoreFailure
import systems.zlink.store.kotlin.StoredValue
import systems.zlink.store.kotlin.WriteResult

/** A call that was described, with its arguments worked out; it begins when it is invoked. */
typealias Call = suspend () -> Fields

fun fields(kind: String, vararg more: Pair<String, Any?>): Fields = buildMap {
    put("kind", kind)
    more.forEach { (name, value) ->
        when (value) {
            null -> {}
            is Instant -> put(name, value.toEpochMilliseconds())
            else -> put(name, value)
        }
    }
}

/** The result of a call, also if that is an error. */
suspend fun resultOf(call: Call): Fields = try {
    call()
} catch (error: Exception) {
    failure(error)
}

fun failure(error: Throwable): Fields = when (error) {
    is StoreException.StateConflict -> fields("conflict")
    is StoreException.RateLimit -> fields("limitReached")
    is StoreException.LockLost -> fields("lost")
    is StoreException.LockUnavailable -> fields("unavailable")
    is StoreFailure -> buildMap {
        put("error", error.code)
        put("outcome", if (error.outcome == Outcome.UNKNOWN) "unknown" else "notApplied")
        put("message", error.message!!)
        (error as? InvalidArgumentException)?.let { put("argument", it.argument) }
    }
    is CancellationException -> mapOf("error" to "CANCELLED", "message" to error.message.orEmpty())
    else -> throw AssertionError("an exception of no kind that is allowed", error)
}

/** The steps that call a store: arguments in, a result as plain fields out, and what is checked of every result. */
class Calls(private val step: JsonObject, private val values: Values, private val versions: MutableSet<String>) {
    fun on(store: LocationStore): Call {
        if (step.has("read")) {
            val key = values.text(step["read"])
            return { read(store.read(key)) }
        }
        if (step.has("scan") || step.has("scanAll")) {
            val scan = step.getAsJsonObject(if (step.has("scan")) "scan" else "scanAll")
            val asked = Asked(
                prefix = scan["prefix"]?.let(values::text) ?: "",
                cursor = scan["cursor"]?.let(values::text),
                limit = scan["limit"]?.let(values::number)?.toInt() ?: 1_000,
            )
            return { if (step.has("scan")) page(store, asked) else scanAll(store, asked) }
        }
        // A step that is one mutation; its `times`, if it has one, was its own.
        val write = if (step.has("write")) step.getAsJsonObject("write") else null
        val conditions = write.list("conditions").map(::condition)
        val mutations = if (write == null) listOf(mutation(step, values)) else write.list("mutations").map {
            mutation(it.form.asJsonObject, it.values)
        }
        return { written(store.write(conditions, mutations), mutations) }
    }

    fun on(store: RelocationStore): Call {
        val verb = step.keySet().first { it.startsWith("blob") }
        val reference = values.text(step[verb])
        val retention = step["retentionMs"]?.let(values::number)?.milliseconds
        return when (verb) {
            "blobPut" -> values.bytes(step["bytes"]).let { { blobPut(store.put(reference, it, retention!!)) } }
            "blobRead" -> { { blobRead(store.read(reference)) } }
            "blobRenew" -> { { blobRenew(store.renew(reference, retention!!)) } }
            else -> { { store.delete(reference).let { fields("deleted") } } }
        }
    }

    // ---- requests --------------------------------------------------------------------------------------------------------------

    private fun JsonObject?.list(name: String): List<Values.Element> = values.expand(this?.getAsJsonArray(name) ?: JsonArray())

    private fun condition(element: Values.Element): Condition {
        val form = element.form.asJsonObject
        val text = { field: String -> element.values.text(form[field]) }
        return if (form.has("missing")) Condition.Missing(text("missing")) else Condition.Version(text("version"), text("expected"))
    }

    private fun mutation(form: JsonObject, values: Values): Mutation =
        if (form.has("delete")) {
            Mutation.Delete(values.text(form["delete"]))
        } else {
            val retention: JsonElement? = form["retentionMs"]
            Mutation.Put(values.text(form["put"]), values.bytes(form["bytes"]), retention?.let(values::number)?.milliseconds)
        }

    // ---- results ---------------------------------------------------------------------------------------------------------------

    private fun read(result: ReadResult): Fields = when (result) {
        is ReadResult.Missing -> fields("missing", "storeNow" to result.storeNow)
        is ReadResult.Found -> result.value.let {
            live(it.expiresAt, it.storeNow)
            fields("found", "storeNow" to it.storeNow, *record(it))
        }
    }

    private fun record(value: StoredValue) =
        arrayOf<Pair<String, Any?>>("bytes" to value.bytes, "version" to value.version, "expiresAt" to value.expiresAt)

    private fun live(expiresAt: Instant?, storeNow: Instant) =
        verify(expiresAt == null || expiresAt > storeNow) { "an expired record was given out" }

    private fun written(result: WriteResult, mutations: List<Mutation>): Fields = when (result) {
        is WriteResult.Conflict -> fields("conflict", "storeNow" to result.storeNow)
        is WriteResult.Applied -> {
            val puts = mutations.filterIsInstance<Mutation.Put>().map { it.key }
            verify(result.versions.keys.toList() == puts) { "the versions are not those of the puts in their order" }
            result.versions.values.forEach { verify(versions.add(it)) { "a version was given out twice" } }
            fields("applied", "storeNow" to result.storeNow, "keys" to puts, "versions" to result.versions.values.toList())
        }
    }

    private data class Asked(val prefix: String, val cursor: String?, val limit: Int)

    private suspend fun page(store: LocationStore, asked: Asked): Fields {
        val page = store.scan(asked.prefix, asked.cursor, asked.limit) as? ScanResult.Page ?: return fields("expired")
        verify(page.items.size <= asked.limit) { "more items than the limit" }
        verify(page.items.isNotEmpty() || page.nextCursor == null && asked.cursor == null) { "an empty page in the middle of a scan" }
        page.items.zipWithNext { one, next -> verify(compare(one.key, next.key) < 0) { "a page out of order" } }
        val size = page.items.sumOf { (key, value) ->
            verify(key.startsWith(asked.prefix)) { "a key without the prefix" }
            verify(value.storeNow == page.storeNow) { "an item with another storeNow than its page" }
            if (asked.cursor == null) {
                live(value.expiresAt, page.storeNow)
            }
            key.toByteArray().size + value.bytes.size + value.version.length
        }
        verify(size <= MOST_ENCODED || page.items.size == 1) { "a page of $size bytes" }
        val items = page.items.map { (key, value) -> fields("item", "key" to key, *record(value)) - "kind" }
        return fields("page", "storeNow" to page.storeNow, "items" to items, "nextCursor" to page.nextCursor)
    }

    private suspend fun scanAll(store: LocationStore, first: Asked): Fields {
        val pages = mutableListOf<Fields>()
        var asked: Asked? = first
        while (asked != null) {
            val page = page(store, asked)
            if (page["kind"] != "page") {
                return page
            }
            pages += page
            asked = page["nextCursor"]?.let { first.copy(cursor = it as String) }
        }
        val items = pages.flatMap { it["items"] as List<*> }
        items.map { (it as Map<*, *>)["key"] as String }.zipWithNext { one, next ->
            verify(compare(one, next) < 0) { "pages out of order" }
        }
        return fields("all", "items" to items, "pages" to pages.size.toLong(), "storeNow" to pages[0]["storeNow"])
    }

    private fun compare(one: String, other: String): Int =
        java.util.Arrays.compareUnsigned(one.toByteArray(), other.toByteArray())

    private fun blobPut(result: BlobPutResult): Fields = when (result) {
        is BlobPutResult.Stored -> fields("stored", "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
        is BlobPutResult.AlreadyStored -> fields("alreadyStored", "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
        is BlobPutResult.Conflict -> fields("conflict", "storeNow" to result.storeNow)
    }

    private fun blobRead(result: BlobReadResult): Fields = when (result) {
        is BlobReadResult.Missing -> fields("missing", "storeNow" to result.storeNow)
        is BlobReadResult.Found -> {
            live(result.expiresAt, result.storeNow)
            fields("found", "bytes" to result.bytes, "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
        }
    }

    private fun blobRenew(result: BlobRenewResult): Fields = when (result) {
        is BlobRenewResult.Missing -> fields("missing", "storeNow" to result.storeNow)
        is BlobRenewResult.Renewed -> fields("renewed", "expiresAt" to result.expiresAt, "storeNow" to result.storeNow)
    }

    companion object {
        private const val MOST_ENCODED = 4 * 1024 * 1024
        private val VERBS = setOf("read", "write", "put", "delete", "scan", "scanAll")

        fun isForBlobs(step: JsonObject): Boolean = step.keySet().any { it.startsWith("blob") }

        fun isCall(step: JsonObject): Boolean = isForBlobs(step) || step.keySet().any(VERBS::contains)
    }
}

inline fun verify(holds: Boolean, otherwise: () -> String) {
    if (!holds) {
        throw AssertionError(otherwise())
    }
}
