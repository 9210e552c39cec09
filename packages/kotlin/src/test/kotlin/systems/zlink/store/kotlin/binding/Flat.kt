package systems.zlink.store.kotlin.binding

import java.lang.management.ManagementFactory
import java.nio.file.Files
import java.nio.file.Path
import kotlin.time.Duration.Companion.hours
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.runBlocking
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.RelocationStore

private const val IN_FLIGHT = 100
private const val ROUNDS = 4

/** What one round may grow by: 20 bytes for each of a hundred thousand calls. */
private const val BOUND = 2 * 1024 * 1024L

/** What all of them may. */
private const val BOUND_OF_ALL = 10 * 1024 * 1024L

/** Works for long, and then tells by how much heap, resident memory and threads grow while it does so again. */
fun main(arguments: Array<String>) {
    val (url, calls) = arguments
    runBlocking(Dispatchers.Default) {
        work(url, calls.toInt())
        // The allocator keeps what it once needed, and a round may still need more than those before. A leak grows in every round: one
        // in which nothing grows, among a few, shows that there is none.
        val first = State()
        var before: State
        var after = first
        var left = ROUNDS
        do {
            before = after
            work(url, calls.toInt())
            after = State()
            println(after.since(before))
        } while (--left > 0 && !after.isFlatSince(before, BOUND))
        println(if (after.isFlatSince(before, BOUND) && after.isFlatSince(first, BOUND_OF_ALL)) "flat" else "not flat")
    }
}

private suspend fun work(url: String, calls: Int) {
    LocationStore.open(url, "t").use { redis ->
        RelocationStore.open(url, "t").use { blobs ->
            LocationStore.open("memory:").use { memory ->
                Project.open(url, "w", "p").use { project ->
                    redis.write { put("k", ByteArray(256)); put("large", ByteArray(100_000)) }
                    memory.write { put("k", ByteArray(256)) }
                    blobs.put("blob", ByteArray(600_000), 1.hours)
                    for (from in 0 until calls step IN_FLIGHT) {
                        coroutineScope {
                            (from until from + IN_FLIGHT).map { number ->
                                async(Dispatchers.Default, CoroutineStart.UNDISPATCHED) {
                                    one(number, redis, blobs, memory, project)
                                }.also { if (number % 10 == 7) it.cancel() }
                            }.filter { !it.isCancelled }.awaitAll()
                        }
                    }
                }
            }
        }
    }
}

private suspend fun one(number: Int, redis: LocationStore, blobs: RelocationStore, memory: LocationStore, project: Project) {
    when (number % 1_000) {
        0, 7 -> redis.read("large")
        1 -> blobs.read("blob")
        2, 17 -> blobs.put("blob", ByteArray(600_000), 1.hours)
        3 -> redis.scan(limit = 10)
        4 -> runCatching { redis.read("") }
        5 -> project.state.namespace("n").set("k", "1")
        6, 27 -> project.locks().acquire("lock-$number")?.release()
        8 -> project.stats()
        in 10..20 -> redis.write { put("k", ByteArray(256)) }
        else -> if (number % 2 == 0) memory.read("k") else redis.read("k")
    }
}

private const val FEW_THREADS = 8

private class State {
    private val heap: Long
    private val resident: Long
    private val threads = ManagementFactory.getThreadMXBean().threadCount

    init {
        repeat(5) {
            System.gc()
            Thread.sleep(100)
        }
        heap = ManagementFactory.getMemoryMXBean().heapMemoryUsage.used
        resident = Files.readString(Path.of("/proc/self/statm")).split(' ')[1].toLong() * 4_096
    }

    /** Coroutines' own threads come when there is much to do at one moment, and go when they have been idle for a minute. */
    fun isFlatSince(before: State, bound: Long) =
        heap - before.heap <= bound && resident - before.resident <= bound && threads <= before.threads + FEW_THREADS

    fun since(before: State) =
        "heap ${(heap - before.heap) / 1024} KiB, resident ${(resident - before.resident) / 1024} KiB, threads ${threads - before.threads}"
}
