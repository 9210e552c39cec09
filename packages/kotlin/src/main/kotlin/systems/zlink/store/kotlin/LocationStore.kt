package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import systems.zlink.store.kotlin.internal.ffi.NativeThreads
import systems.zlink.store.kotlin.internal.ffi.ReadOperation
import systems.zlink.store.kotlin.internal.ffi.ScanOperation
import systems.zlink.store.kotlin.internal.ffi.StoreOptions
import systems.zlink.store.kotlin.internal.ffi.WriteOperation
import systems.zlink.store.kotlin.internal.ffi.Condition as NativeCondition
import systems.zlink.store.kotlin.internal.ffi.LocationStore as NativeStore
import systems.zlink.store.kotlin.internal.ffi.Mutation as NativeMutation
import systems.zlink.store.kotlin.internal.ffi.ReadResult as NativeReadResult
import systems.zlink.store.kotlin.internal.ffi.ScanResult as NativeScanResult
import systems.zlink.store.kotlin.internal.ffi.StoredValue as NativeValue
import systems.zlink.store.kotlin.internal.ffi.WriteResult as NativeWriteResult

/**
 * Small records under opaque keys: conditional atomic batches, exact snapshot scans, expiry by the engine's own clock.
 *
 * ```
 * LocationStore.open("redis://localhost", keyPrefix = "app").use { store ->
 *     store.write {
 *         ifMissing("actor/7")
 *         put("actor/7", "node-1".encodeToByteArray(), retention = 30.seconds)
 *     }
 *     when (val result = store.read("actor/7")) {
 *         is ReadResult.Found -> println(result.value.bytes.decodeToString())
 *         is ReadResult.Missing -> println("nobody has it")
 *     }
 * }
 * ```
 *
 * Any number of coroutines and threads may use one store. Cancelling a coroutine ends its operation at once: what was not yet sent
 * is never sent, what was sent may or may not happen. Every function may throw [StoreException] besides what it names.
 *
 * What comes behind a call runs where the coroutine's dispatcher has it run. A dispatcher that runs tasks where they stand
 * (`Dispatchers.Unconfined`, an executor that is direct, or that has its callers run what it has no room for) runs it on the calling
 * thread if the answer was there at once, and else on one of the threads of `Dispatchers.IO`, beyond the limit of that. It is never a
 * thread that other operations need: code that blocks there holds up nobody else's, however many do.
 */
public class LocationStore private constructor(private val native: NativeStore) : Store() {
    public companion object {
        /**
         * Makes a store, without I/O: the first operation connects. Stores with the same connection settings share one connection.
         *
         * @param url `memory:` (private), `memory:name` (shared in the process), `file:/path/to/folder`, or `redis://…` and its kin
         * @param keyPrefix the store's name space, at most 256 bytes of UTF-8 without braces; needed on Redis
         * @param operationTimeout bounds a whole operation: queueing, connecting, retries and the answer; 1 ms..2^31−1 ms, 5 s if left
         *   out
         * @throws InvalidArgumentException if one of them is not so
         */
        public fun open(url: String, keyPrefix: String = "", operationTimeout: Duration? = null): LocationStore =
            LocationStore(translated { NativeStore.open(text("url", url), storeOptions(keyPrefix, operationTimeout)) })
    }

    override val life: Life = Life(native::ping, native::stats, native::shutdown)

    /**
     * Reads one key (1..1,024 bytes of UTF-8): one observation of value, version, expiry and clock.
     *
     * @throws InvalidArgumentException if the key is not so
     */
    public suspend fun read(key: String): ReadResult =
        when (val result = run({ native.read(text("key", key)) }, ReadOperation::start, { it.wait() }, ReadOperation::result)) {
            is NativeReadResult.Missing -> ReadResult.Missing(instant(result.storeNowMs))
            is NativeReadResult.Found -> ReadResult.Found(stored(result.value))
        }

    /**
     * Checks all conditions and, if all hold, applies all mutations as one atomic commit. At most 2,048 keys in all, and 4 MiB of
     * keys, expected versions and values. With neither conditions nor mutations it tells the engine's clock.
     *
     * @throws InvalidArgumentException if a key, a value, a retention or the whole is outside its limits, or a key stands twice among
     *   the conditions or twice among the mutations
     */
    public suspend fun write(conditions: List<Condition> = emptyList(), mutations: List<Mutation> = emptyList()): WriteResult {
        val make = {
            val handed = Handed()
            native.write(handed.conditions(conditions), handed.mutations(mutations))
        }
        return when (val result = run(make, WriteOperation::start, { it.wait() }, WriteOperation::result)) {
            is NativeWriteResult.Conflict -> WriteResult.Conflict(instant(result.storeNowMs))
            is NativeWriteResult.Applied ->
                WriteResult.Applied(result.putVersions.associate { it.key to it.version }, instant(result.storeNowMs))
        }
    }

    /** [write] of what [build] says. */
    public suspend fun write(build: WriteBuilder.() -> Unit): WriteResult =
        WriteBuilder().apply(build).let { write(it.conditions, it.mutations) }

    /**
     * Reads one page of a snapshot scan. The first page (without a cursor) fixes the snapshot, which lives 5 minutes; every page
     * shows the store as it stood at that one instant. [items] goes through all pages.
     *
     * @param prefix what the keys start with: 0..1,024 bytes of UTF-8
     * @param cursor the [ScanResult.Page.nextCursor] of the page before
     * @param limit the most items of this page: 1..1,000
     * @throws InvalidArgumentException if one of them is not so
     */
    public suspend fun scan(prefix: String = "", cursor: String? = null, limit: Int = MOST_ITEMS): ScanResult {
        val make = { native.scan(text("prefix", prefix), cursor?.let { text("cursor", it) }, limit.toLong()) }
        return when (val result = run(make, ScanOperation::start, { it.wait() }, ScanOperation::result)) {
            is NativeScanResult.Expired -> ScanResult.Expired
            is NativeScanResult.Page -> ScanResult.Page(
                result.items.map { ScanItem(it.key, stored(it.value)) }, result.nextCursor, instant(result.storeNowMs),
            )
        }
    }

    /**
     * All records whose keys start with [prefix] (0..1,024 bytes of UTF-8), as they stood at one instant, in ascending byte order
     * of their keys. The flow is cold: each collection is a scan of its own, which reads a page when the one before is used up.
     *
     * Collecting it throws [InvalidArgumentException] if an argument is outside its limits, and [StoreException.ScanExpired] if the
     * snapshot is gone before the end (it lives 5 minutes).
     *
     * @param pageSize how many items are read at a time: 1..1,000
     */
    public fun items(prefix: String = "", pageSize: Int = MOST_ITEMS): Flow<ScanItem> = flow {
        var cursor: String? = null
        do {
            when (val page = scan(prefix, cursor, pageSize)) {
                is ScanResult.Expired -> throw StoreException.ScanExpired()
                is ScanResult.Page -> {
                    page.items.forEach { emit(it) }
                    cursor = page.nextCursor
                }
            }
        } while (cursor != null)
    }
}

private const val MOST_ITEMS = 1_000

internal fun storeOptions(keyPrefix: String, operationTimeout: Duration?): StoreOptions {
    NativeThreads.prepare()
    return StoreOptions(text("keyPrefix", keyPrefix), operationTimeout?.upToMilliseconds())
}

private fun Handed.conditions(conditions: List<Condition>): List<NativeCondition> = conditions.mapIndexed { at, condition ->
    val key = text("conditions[$at].key", condition.key)
    when (condition) {
        is Condition.Missing -> NativeCondition.Missing(key)
        is Condition.Version -> NativeCondition.Version(key, text("conditions[$at].expected", condition.expected))
    }
}

private fun Handed.mutations(mutations: List<Mutation>): List<NativeMutation> = mutations.mapIndexed { at, mutation ->
    val key = text("mutations[$at].key", mutation.key)
    when (mutation) {
        is Mutation.Delete -> NativeMutation.Delete(key)
        is Mutation.Put ->
            NativeMutation.Put(key, bytes("mutations[$at].bytes", mutation.bytes), mutation.retention?.upToMilliseconds())
    }
}

private fun stored(value: NativeValue): StoredValue =
    StoredValue(value.bytes, value.version, value.expiresAtMs?.let(::instant), instant(value.storeNowMs))
