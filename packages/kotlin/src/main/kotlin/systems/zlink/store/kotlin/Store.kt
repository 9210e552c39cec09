package systems.zlink.store.kotlin

import kotlin.time.Instant
import systems.zlink.store.kotlin.internal.ffi.PingOperation
import systems.zlink.store.kotlin.internal.ffi.Stats as NativeStats

/** What all stores have: a life, a health call and counters. */
public sealed class Store : AutoCloseable {
    internal abstract val life: Life

    /**
     * Asks the engine for its clock: shows that it answers.
     *
     * @throws StoreException if it does not
     */
    public suspend fun ping(): Instant =
        instant(run(life.ping, PingOperation::start, { it.wait() }, PingOperation::result))

    /** What this store has counted so far. No I/O. */
    public fun stats(): StoreStats = translated { life.stats() }.let { stats ->
        StoreStats(
            operations = stats.operations.mapValues { it.value.toLong() },
            errors = stats.errors.mapValues { it.value.toLong() },
            latencyLog2Micros = stats.latencyUsLog2.map { it.toLong() },
            inFlight = stats.inFlight.toLong(),
            reconnects = stats.reconnects.toLong(),
            commandsSent = stats.commandsSent.toLong(),
        )
    }

    /**
     * Closes the store without blocking a thread: fails new operations with [StoreException.Closed], waits for those under way (at
     * most the operation timeout) and gives up the connection. Closing goes on if the wait for it is cancelled; doing it again does
     * nothing more.
     */
    public suspend fun shutdown() {
        translated { life.shutdown() }
    }

    /** As [shutdown], but blocks the thread meanwhile; an interrupted thread goes on at once, and stays interrupted. */
    override fun close() {
        blocking { shutdown() }
    }
}

/** The calls of a native store that all have. */
internal class Life(val ping: () -> PingOperation, val stats: () -> NativeStats, val shutdown: suspend () -> Unit)

/**
 * What a store has counted since it was made, as a plain snapshot.
 *
 * @property operations operations begun, by kind (`read`, `write` …)
 * @property errors failures, by [code][StoreFailure.code]; codes that never came are left out
 * @property latencyLog2Micros finished operations by latency: entry `i` counts those that took at least 2^i and under 2^(i+1)
 *   microseconds (entry 0 also those under 1 µs)
 * @property inFlight operations under way
 * @property reconnects connections made again after a loss, by all stores on the same connection
 * @property commandsSent commands sent to the server, by all stores on the same connection
 */
public class StoreStats internal constructor(
    public val operations: Map<String, Long>,
    public val errors: Map<String, Long>,
    public val latencyLog2Micros: List<Long>,
    public val inFlight: Long,
    public val reconnects: Long,
    public val commandsSent: Long,
) {
    override fun toString(): String =
        "StoreStats(operations=$operations, errors=$errors, inFlight=$inFlight, reconnects=$reconnects, commandsSent=$commandsSent)"
}
