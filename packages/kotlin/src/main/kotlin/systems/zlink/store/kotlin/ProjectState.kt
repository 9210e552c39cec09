package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlin.time.Instant
import systems.zlink.store.kotlin.internal.ffi.StateDeleteOperation
import systems.zlink.store.kotlin.internal.ffi.StateDeleteResult
import systems.zlink.store.kotlin.internal.ffi.StateGetOperation
import systems.zlink.store.kotlin.internal.ffi.StateSetOperation
import systems.zlink.store.kotlin.internal.ffi.StateSetResult
import systems.zlink.store.kotlin.internal.ffi.ProjectState as NativeState
import systems.zlink.store.kotlin.internal.ffi.StateEntry as NativeEntry
import systems.zlink.store.kotlin.internal.ffi.StateNamespace as NativeNamespace

/**
 * A live entry of a project's state. All times are the engine's.
 *
 * @property json the value's JSON text, in the form of JavaScript's `JSON.stringify`, numbers as they were written
 * @property version counts the writes since the entry was created: 1, 2, 3 … After a deletion or expiry it starts again at 1
 * @property createdAt when its version 1 was written
 * @property updatedAt when this version was written
 * @property expiresAt when it stops being there; `null` if it does not
 */
public data class StateEntry(
    public val json: String,
    public val version: Long,
    public val createdAt: Instant,
    public val updatedAt: Instant,
    public val expiresAt: Instant?,
)

/** The state of one project: durable JSON entries under namespaces and keys, at most 100,000 live ones. */
public class ProjectState internal constructor(
    /** The project whose state this is: [Store.ping], [Store.stats] and [Store.close]. */
    public val project: Project,
    private val native: NativeState,
    private val ownsProject: Boolean = false,
) : AutoCloseable {
    public companion object {
        /**
         * Makes a project, without I/O, and gives its state; [close] closes it. The arguments are those of [Project.open].
         *
         * @throws InvalidArgumentException if one of them is outside its limits
         */
        public fun open(url: String, workspace: String, project: String, operationTimeout: Duration? = null): ProjectState =
            Project.open(url, workspace, project, operationTimeout).run { ProjectState(this, nativeState(), ownsProject = true) }
    }

    /** Closes the [project], if this was made by [open]; another ends with its project. */
    override fun close() {
        if (ownsProject) project.close()
    }

    /**
     * The entries of one namespace. No I/O.
     *
     * @param name 1..128 characters of `A-Z a-z 0-9 . _ : / -`, the first a letter or digit
     * @throws InvalidArgumentException if it is not so
     */
    public fun namespace(name: String): StateNamespace =
        StateNamespace(name, translated { native.namespace(text("namespace", name)) })
}

/**
 * The entries of one namespace. A key is 1..255 characters of `A-Z a-z 0-9 . _ : / -`, the first a letter or digit. Every function
 * throws [InvalidArgumentException] if an argument is outside its limits, and may throw [StoreException].
 */
public class StateNamespace internal constructor(
    /** Its name. */
    public val name: String,
    private val native: NativeNamespace,
) {
    /** The live entry under [key], or `null`. */
    public suspend fun get(key: String): StateEntry? =
        run({ native.get(text("key", key)) }, StateGetOperation::start, { it.wait() }, StateGetOperation::result)?.let(::entry)

    /**
     * Writes a value as one atomic step, and gives the entry as it stands then.
     *
     * @param json any JSON text of at most 32,768 bytes in the form of `JSON.stringify`
     * @param expectedVersion 0: only if there is no entry; n > 0: only if the live entry has version n; left out: in any case
     * @param ttl how long the entry lives from this write on: 1..31,536,000 s, rounded up to whole seconds; left out: it does not
     *   expire, also when it had an expiry before
     * @throws StoreException.StateConflict if the expected version is not there
     * @throws StoreException.RateLimit if the project has 100,000 live entries and this would be one more
     */
    public suspend fun set(key: String, json: String, expectedVersion: Long? = null, ttl: Duration? = null): StateEntry {
        val make = { native.set(text("key", key), text("value", json), expectedVersion, ttl?.upToSeconds()) }
        return when (val result = run(make, StateSetOperation::start, { it.wait() }, StateSetOperation::result)) {
            is StateSetResult.Stored -> entry(result.entry)
            is StateSetResult.Conflict -> throw StoreException.StateConflict()
            is StateSetResult.LimitReached -> throw StoreException.RateLimit()
        }
    }

    /**
     * Deletes the live entry under [key], and says whether there was one.
     *
     * @param expectedVersion n > 0: only version n (also an absent entry is a conflict); 0: a live entry is a conflict; left out: in
     *   any case
     * @throws StoreException.StateConflict if the expected version is not there
     */
    public suspend fun delete(key: String, expectedVersion: Long? = null): Boolean {
        val make = { native.delete(text("key", key), expectedVersion) }
        return when (run(make, StateDeleteOperation::start, { it.wait() }, StateDeleteOperation::result)) {
            StateDeleteResult.DELETED -> true
            StateDeleteResult.MISSING -> false
            StateDeleteResult.CONFLICT -> throw StoreException.StateConflict()
        }
    }
}

private fun entry(entry: NativeEntry): StateEntry = StateEntry(
    entry.json, entry.version, instant(entry.createdAtMs), instant(entry.updatedAtMs), entry.expiresAtMs?.let(::instant),
)
