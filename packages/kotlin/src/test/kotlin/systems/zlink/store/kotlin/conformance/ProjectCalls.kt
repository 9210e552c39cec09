package systems.zlink.store.kotlin.conformance

import com.google.gson.JsonObject
import java.util.concurrent.ConcurrentHashMap
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import systems.zlink.store.kotlin.DistributedLocks
import systems.zlink.store.kotlin.LockLease
import systems.zlink.store.kotlin.ProjectState
import systems.zlink.store.kotlin.StateEntry

/** The ids of all grants of a scenario. */
class Grants {
    private val ids = ConcurrentHashMap.newKeySet<String>()

    /** A lease that was just acquired, as a result. */
    fun granted(lease: LockLease): Fields {
        verify(ids.add(lease.id)) { "two grants have the same id" }
        return leaseFields(lease)
    }
}

/** What a step says of an acquire; what it leaves out is left out of the call. */
class LockOptions(step: JsonObject, values: Values) {
    val namespace: String? = step["namespace"]?.let(values::text)
    val wait: Duration? = step["waitMs"]?.let(values::number)?.milliseconds
    val lease: Duration? = step["leaseMs"]?.let(values::number)?.milliseconds
}

fun leaseFields(lease: LockLease): Fields = fields(
    "lease", "id" to lease.id, "key" to lease.key, "namespace" to lease.namespace, "fencingToken" to lease.fencingToken,
    "expiresAt" to lease.expiresAt, "object" to lease,
)

/** The steps that call a project's state and locks. */
class ProjectCalls(private val step: JsonObject, private val values: Values, private val grants: Grants) {
    fun on(state: ProjectState): Call {
        step["stateNamespace"]?.let(values::text)?.let { name -> return { fields("namespace", "name" to state.namespace(name).name) } }
        val name = step["namespace"]?.let(values::text) ?: "ns"
        val key = values.text(step[step.keySet().first(STATE::contains)])
        val expectedVersion = step["expectedVersion"]?.let(values::number)
        if (step.has("stateGet")) {
            return { state.namespace(name).get(key)?.let { entry("entry", it) } ?: fields("missing") }
        }
        if (step.has("stateSet")) {
            val json = values.text(step["json"])
            val ttl = step["ttlSeconds"]?.let(values::number)?.seconds
            return { entry("stored", state.namespace(name).set(key, json, expectedVersion, ttl)) }
        }
        return { fields(if (state.namespace(name).delete(key, expectedVersion)) "deleted" else "missing") }
    }

    fun on(locks: DistributedLocks): Call {
        if (step.has("lockAcquire")) {
            val key = values.text(step["lockAcquire"])
            val options = LockOptions(step, values)
            return {
                val began = System.nanoTime()
                val result = resultOf {
                    locks.acquire(key, options.namespace, options.wait, options.lease)?.let(grants::granted) ?: fields("unavailable")
                }
                // Whole milliseconds, upwards: a timer counts no finer.
                result + ("tookMs" to (System.nanoTime() - began + 999_999) / 1_000_000)
            }
        }
        if (step.has("lockAttach")) {
            val id = values.text(step["lockAttach"])
            return { leaseFields(locks.attach(id)) }
        }
        val lease = values.named(values.text(step[step.keySet().first(LOCKS::contains)]) + ".object") as LockLease
        return when {
            step.has("lockRenew") -> step["leaseMs"]?.let(values::number)?.milliseconds.let { length ->
                {
                    val said = lease.renew(length)
                    verify(said == lease.expiresAt) { "the lease object does not say the new expiresAt" }
                    fields("renewed", "expiresAt" to lease.expiresAt)
                }
            }
            step.has("lockRelease") -> { { lease.release().let { fields("released") } } }
            else -> { { leaseFields(lease) } }
        }
    }

    private fun entry(kind: String, entry: StateEntry): Fields {
        val expiresAt = entry.expiresAt
        verify(entry.version >= 1) { "an entry without a version" }
        verify(entry.createdAt <= entry.updatedAt) { "an entry written before it was created" }
        verify(expiresAt == null || expiresAt > entry.updatedAt) { "an entry that expires before it is written" }
        return fields(
            kind, "json" to entry.json, "version" to entry.version, "createdAt" to entry.createdAt, "updatedAt" to entry.updatedAt,
            "expiresAt" to expiresAt,
        )
    }

    companion object {
        private val LOCKS = setOf("lockAcquire", "lockAttach", "lockRenew", "lockRelease", "lease")
        private val STATE = setOf("stateNamespace", "stateGet", "stateSet", "stateDelete")

        fun isForState(step: JsonObject): Boolean = step.keySet().any(STATE::contains)

        fun isCall(step: JsonObject): Boolean = isForState(step) || step.keySet().any(LOCKS::contains)
    }
}
