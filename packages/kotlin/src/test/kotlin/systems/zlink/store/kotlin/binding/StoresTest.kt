package systems.zlink.store.kotlin.binding

import kotlin.time.Duration
import kotlin.time.Duration.Companion.microseconds
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Job
import kotlinx.coroutines.cancel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.collect
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.flow.take
import kotlinx.coroutines.flow.toList
import kotlinx.coroutines.launch
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.BlobReadResult
import systems.zlink.store.kotlin.Condition
import systems.zlink.store.kotlin.InvalidArgumentException
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Mutation
import systems.zlink.store.kotlin.Outcome
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.ReadResult
import systems.zlink.store.kotlin.RelocationStore
import systems.zlink.store.kotlin.StoreException
import systems.zlink.store.kotlin.WriteResult
import systems.zlink.store.kotlin.support.test

/** What the hand-written layer makes of the stores. */
class StoresTest {
    private suspend inline fun <reified E : Throwable> fails(crossinline call: suspend () -> Unit): E = try {
        call()
        throw AssertionError("it did not fail")
    } catch (error: Throwable) {
        error as? E ?: throw AssertionError("another error", error)
    }

    private infix fun String.by(call: suspend () -> Unit) = this to call

    @Test
    fun `the block and the lists say the same, and results are told apart by when`() = test {
        LocationStore.open("memory:").use { store ->
            val applied = store.write {
                ifMissing("b")
                put("b", byteArrayOf(1), retention = 60.seconds)
                put("a", byteArrayOf(2))
            } as WriteResult.Applied
            assertEquals(listOf("b", "a"), applied.versions.keys.toList())
            val read = when (val result = store.read("b")) {
                is ReadResult.Found -> result.value
                is ReadResult.Missing -> throw AssertionError("missing")
            }
            assertArrayEquals(byteArrayOf(1), read.bytes)
            assertEquals(applied.versions["b"], read.version)
            assertEquals(applied.storeNow + 60.seconds, read.expiresAt)
            val lists = store.write(listOf(Condition.Version("b", read.version)), listOf(Mutation.Delete("b"), Mutation.Put("c", byteArrayOf(3))))
            assertEquals(setOf("c"), (lists as WriteResult.Applied).versions.keys)
            assertTrue(store.write { ifVersion("b", read.version) } is WriteResult.Conflict)
            assertTrue(store.read("b") is ReadResult.Missing)
        }
    }

    @Test
    fun `use closes, closing twice is fine, and what comes behind it fails with CLOSED`() = test {
        val store = LocationStore.open("memory:").use { it }
        assertEquals("CLOSED", fails<StoreException.Closed> { store.read("k") }.code)
        store.close()
        store.shutdown()
        val project = Project.open("memory:", "w", "p")
        project.use { it.state.namespace("n").set("k", "1") }
        fails<StoreException.Closed> { project.locks().acquire("k") }
        fails<StoreException.Closed> { project.state.namespace("n").get("k") }
    }

    @Test
    fun `an interrupted thread closes without waiting and stays interrupted`() = test {
        val store = LocationStore.open("memory:")
        Thread.currentThread().interrupt()
        store.close()
        assertTrue(Thread.interrupted())
    }

    @Test
    fun `a wrong argument is an IllegalArgumentException that names it, in a cancelled coroutine too`() = test {
        LocationStore.open("memory:").use { store ->
            val wrong: List<Pair<String, suspend () -> Unit>> = listOf(
                "key" by { store.read("") },
                "key" by { store.read("a\uD800b") },
                "key" by { store.read("\uDC00") },
                "conditions[1].key" by { store.write(listOf(Condition.Missing("a"), Condition.Missing("\uD83D"))) },
                "mutations[0].retention" by { store.write { put("k", ByteArray(1), Duration.ZERO) } },
                "mutations[0].retention" by { store.write { put("k", ByteArray(1), (-1).seconds) } },
                "mutations[0].retention" by { store.write { put("k", ByteArray(1), Duration.INFINITE) } },
                "mutations[1].bytes" by { store.write { put("k", ByteArray(1)); put("l", ByteArray(1_048_577)) } },
                "prefix" by { store.scan("\uD800") },
                "limit" by { store.scan(limit = -1) },
                "limit" by { store.items(pageSize = 0).collect() },
            )
            for ((argument, call) in wrong) {
                val error = fails<IllegalArgumentException>(call) as InvalidArgumentException
                assertEquals(argument, error.argument)
                assertEquals("INVALID_ARGUMENT", error.code)
                assertEquals(Outcome.NOT_APPLIED, error.outcome)
                assertFalse(error.retryable)
                assertTrue(argument in error.message!!)
                var seen: Throwable? = null
                coroutineScope {
                    launch(Job()) {
                        coroutineContext.cancel()
                        seen = fails<Throwable>(call)
                    }.join()
                }
                assertTrue(seen is InvalidArgumentException, "$argument: $seen")
            }
        }
        assertEquals("keyPrefix", fails<InvalidArgumentException> { LocationStore.open("memory:", "{") }.argument)
        assertEquals("operationTimeout", fails<InvalidArgumentException> { LocationStore.open("memory:", operationTimeout = Duration.ZERO) }.argument)
        fails<InvalidArgumentException> { LocationStore.open("nowhere:") }
        fails<InvalidArgumentException> { Project.open("memory:", "w\uD800", "p") }
    }

    @Test
    fun `durations round up to what is counted`() = test {
        RelocationStore.open("memory:").use { store ->
            store.put("r", ByteArray(0), retention = 1.microseconds + 59.seconds)
            val found = store.read("r") as BlobReadResult.Found
            assertEquals(0, found.bytes.size)
        }
        Project.open("memory:", "w", "p").use { project ->
            val entry = project.state.namespace("n").set("k", "{ }", ttl = 1.milliseconds)
            assertEquals("{}", entry.json)
            assertEquals(entry.updatedAt + 1.seconds, entry.expiresAt)
        }
    }

    @Test
    fun `an engine that is not there is told by code, outcome and retryable`() = test {
        LocationStore.open("redis://127.0.0.1:1", keyPrefix = "k", operationTimeout = 300.milliseconds).use { store ->
            val error = fails<StoreException> { store.write { delete("k") } }
            assertTrue(error is StoreException.Unavailable || error is StoreException.Timeout, "$error")
            assertEquals(Outcome.NOT_APPLIED, error.outcome)
            assertTrue(error.retryable)
            assertEquals(1L, store.stats().errors[error.code])
        }
    }

    @Test
    fun `a flow goes through all pages of one instant, page by page, and stops when nobody collects`() = test {
        LocationStore.open("memory:").use { store ->
            val keys = (1..25).map { "k%02d".format(it) }
            store.write { keys.forEach { put(it, it.encodeToByteArray()) } }
            val items = store.items("k", pageSize = 10)
            var first = true
            val seen = items.map { item ->
                if (first) store.write { delete("k25"); put("k26", ByteArray(0)) }
                first = false
                assertEquals(item.key, item.value.bytes.decodeToString())
                item.key
            }.toList()
            assertEquals(keys, seen)
            // Cold: another collection is another scan.
            assertEquals(listOf("k24", "k26"), items.toList().map { it.key }.takeLast(2))
            val before = store.stats().operations["scan"]!!
            assertEquals(3, items.take(3).toList().size)
            assertEquals(before + 1, store.stats().operations["scan"])
        }
    }

    @Test
    fun `a flow whose snapshot is gone ends with ScanExpired`() = test {
        LocationStore.open("memory:").use { store ->
            store.write { (1..3).forEach { put("k$it", ByteArray(1)) } }
            val error = fails<StoreException.ScanExpired> {
                store.items(pageSize = 1).collect {
                    // The 65th unfinished snapshot drops the oldest.
                    repeat(64) { store.scan(limit = 1) }
                }
            }
            assertEquals("SCAN_EXPIRED", error.code)
        }
    }

    @Test
    fun `values with bytes are equal by content, and do not show them`() {
        assertEquals(Mutation.Put("k", byteArrayOf(1, 2)), Mutation.Put("k", byteArrayOf(1, 2)))
        assertEquals(Mutation.Put("k", byteArrayOf(1)).hashCode(), Mutation.Put("k", byteArrayOf(1)).hashCode())
        assertFalse(Mutation.Put("k", byteArrayOf(1)) == Mutation.Put("k", byteArrayOf(2)))
        assertEquals("Put(key=k, 2 bytes, retention=null)", Mutation.Put("k", byteArrayOf(1, 2)).toString())
    }

    @Test
    fun `ping tells the engine's clock, and stats count`() = test {
        LocationStore.open("memory:").use { store ->
            assertTrue(store.ping() <= store.ping())
            store.read("k")
            val stats = store.stats()
            assertEquals(1L, stats.operations["read"])
            assertEquals(0, stats.inFlight)
            assertEquals(stats.operations.values.sum(), stats.latencyLog2Micros.sum())
        }
    }
}
