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
import systems.zlink.store.kotlin.RelocationStore

private const val IN_FLIGHT = 100
private const val BOUND = 10 * 1024 * 1024L

/** Works for long, and then tells by how much heap, resident memory and threads grow while it does so again. */
fun main(arguments: Array<String>) {
    val (url, calls) = arguments
    runBlocking(Dispatchers.Default) {
        work(url, calls.toInt() / 2)
        // The allocator keeps what it once needed, and a round may still need more than those before. A leak grows in every one.
        var flat = false
        repeat(3) {
            if (!flat) {
                val before = Memory()
                work(url, calls.toInt())
                val after = Memory()
                println("heap ${(after.heap - before.heap) / 1024} KiB, resident ${(after.resident - before.resident) / 1024} KiB")
                flat = after.heap - before.heap <= BOUND && after.resident - before.resident <= BOUND
            }
        }
        println(if (flat) "flat" else "not flat")
    }
}

private suspend fun work(url: String, calls: Int) {
    LocationStore.open(url, "t").use { redis ->
        RelocationStore.open(url, "t").use { blobs ->
            LocationStore.open("memory:").use { memory ->
                redis.write { put("k", ByteArray(256)); put("large", ByteArray(100_000)) }
                memory.write { put("k", ByteArray(256)) }
                blobs.put("blob", ByteArray(600_000), 1.hours)
                for (from in 0 until calls step IN_FLIGHT) {
                    coroutineScope {
                        (from until from + IN_FLIGHT).map { number ->
                            async(Dispatchers.Default, CoroutineStart.UNDISPATCHED) { one(number, redis, blobs, memory) }.also {
                                if (number % 10 == 7) it.cancel()
                            }
                        }.filter { !it.isCancelled }.awaitAll()
                    }
                }
            }
        }
    }
}

private suspend fun one(number: Int, redis: LocationStore, blobs: RelocationStore, memory: LocationStore) {
    when (number % 1_000) {
        0 -> redis.read("large")
        1 -> blobs.read("blob")
        2 -> blobs.put("blob", ByteArray(600_000), 1.hours)
        3 -> redis.scan(limit = 10)
        4 -> runCatching { redis.read("") }
        in 10..20 -> redis.write { put("k", ByteArray(256)) }
        else -> if (number % 2 == 0) memory.read("k") else redis.read("k")
    }
}

private class Memory {
    val heap: Long
    val resident: Long

    init {
        repeat(5) {
            System.gc()
            Thread.sleep(100)
        }
        heap = ManagementFactory.getMemoryMXBean().heapMemoryUsage.used
        resident = Files.readString(Path.of("/proc/self/statm")).split(' ')[1].toLong() * 4_096
    }
}
