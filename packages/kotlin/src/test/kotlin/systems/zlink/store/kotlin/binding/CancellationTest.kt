package systems.zlink.store.kotlin.binding

import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.async
import kotlinx.coroutines.cancel
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.BlobReadResult
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.LockLease
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.ReadResult
import systems.zlink.store.kotlin.RelocationStore
import systems.zlink.store.kotlin.StoreException
import systems.zlink.store.kotlin.internal.ffi.uniffiContinuationHandleMap
import systems.zlink.store.kotlin.support.PATIENCE
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.eventually
import systems.zlink.store.kotlin.support.test

/** Cancelling a coroutine during each operation, against a Redis that can be made to say nothing. */
@OptIn(ExperimentalCoroutinesApi::class)
class CancellationTest {
    private val redis = TestServer("--proxy")
    private val store = LocationStore.open(redis.proxyUrl, "t", 60.seconds)
    private val blobs = RelocationStore.open(redis.proxyUrl, "t", 60.seconds)
    private val project = Project.open(redis.proxyUrl, "w", "p", 60.seconds)
    private val straight = LocationStore.open(redis.url, "t", 60.seconds)

    private infix fun String.by(call: suspend () -> Any?) = this to call

    /** Each operation, which would change what it is named after. */
    private fun operations(lease: LockLease): Map<String, suspend () -> Any?> {
        val bytes = ByteArray(1_000)
        val namespace = project.state.namespace("n")
        return mapOf(
            "read" by { store.read("k") },
            "write" by { store.write { put("k", bytes); put("l", bytes) } },
            "scan" by { store.scan() },
            "ping" by { store.ping() },
            "blob put" by { blobs.put("r", bytes, 60.seconds) },
            "blob read" by { blobs.read("r") },
            "blob renew" by { blobs.renew("r", 60.seconds) },
            "blob delete" by { blobs.delete("r") },
            "state get" by { namespace.get("k") },
            "state set" by { namespace.set("k", "1") },
            "state delete" by { namespace.delete("k") },
            "acquire" by { project.locks().acquire("free", lease = 5.seconds)?.release() },
            "acquire that waits" by { project.locks().acquire("held", wait = 10.seconds) },
            "attach" by { project.locks().attach(lease.id) },
            "renew" by { lease.renew() },
            "release" by { lease.release() },
        )
    }

    @AfterEach
    fun stop() {
        redis.obey("proxy heal")
        listOf(store, blobs, project, straight).forEach { it.close() }
        redis.close()
    }

    /** Whoever is waiting has gone, here and in the native library. */
    private suspend fun nothingIsUnderWay() {
        eventually("no continuation is held") { uniffiContinuationHandleMap.size == 0 }
        for (each in listOf(store, blobs, project)) {
            eventually("nothing is under way") { each.stats().inFlight == 0L }
        }
    }

    @Test
    fun `a cancelled operation ends at once, whichever it is, and later ones are right`() = test {
        val lease = project.locks().acquire("held", lease = 60.seconds)!!
        blobs.read("r")
        store.read("k")
        redis.obey("proxy swallow")
        suspend fun endsAtOnce(name: String, operation: suspend () -> Any?) {
            for (context in listOf(Dispatchers.Default) + runningWhereTheyStand().values) {
                val waiting = CoroutineScope(context).async(start = CoroutineStart.UNDISPATCHED) { operation() }
                assertTrue(waiting.isActive, name)
                val began = TimeSource.Monotonic.markNow()
                waiting.cancelAndJoin()
                assertTrue(waiting.getCompletionExceptionOrNull() is CancellationException, name)
                // The operation timeout is a minute.
                assertTrue(began.elapsedNow() < PATIENCE / 2, "$name took ${began.elapsedNow()}")
            }
        }
        val operations = operations(lease)
        (operations - "release").forEach { (name, operation) -> endsAtOnce(name, operation) }
        nothingIsUnderWay()
        // A release that has begun goes on.
        endsAtOnce("release", operations.getValue("release"))
        assertTrue(project.stats().inFlight > 0)
        redis.obey("proxy heal")
        redis.obey("proxy cut")
        nothingIsUnderWay()
        assertTrue(runCatching { project.locks().attach(lease.id) }.exceptionOrNull() is StoreException.LockLost)
        assertTrue(store.read("k") is ReadResult.Missing)
        assertTrue(blobs.read("r") is BlobReadResult.Missing)
        assertNull(project.state.namespace("n").get("k"))
    }

    @Test
    fun `a thousand rounds of each operation, cancelled anywhere, leave nothing behind and writes whole`() = test {
        val lease = project.locks().acquire("held", lease = 60.seconds)!!
        // An acquire is followed by its release.
        for ((name, operation) in operations(lease) - "release") {
            val ends = mutableSetOf<String>()
            repeat(1_000) { round ->
                val running = CoroutineScope(Dispatchers.Default).async(start = CoroutineStart.UNDISPATCHED) { operation() }
                // At once, or a little later, when the answer may be there already.
                repeat(round % 7) { kotlinx.coroutines.yield() }
                if (round % 10 == 0) store.read("k")
                running.cancel()
                running.join()
                ends += running.getCompletionExceptionOrNull()?.javaClass?.simpleName ?: "done"
            }
            assertTrue(ends.any { "Cancel" in it }, "$name: $ends")
            nothingIsUnderWay()
        }
        // Both records of a commit, or none.
        val (k, l) = straight.read("k") to straight.read("l")
        assertEquals(k is ReadResult.Found, l is ReadResult.Found)
        // No acquire has left a lease: at most the one that is ours.
        eventually("the lock is free") { project.locks().acquire("free")?.release() != null }
    }

    @Test
    fun `a coroutine that is cancelled already sends nothing`() = test {
        val lease = project.locks().acquire("held", lease = 60.seconds)!!
        store.read("k")
        blobs.read("r")
        val begun = { listOf(store, blobs, project).sumOf { it.stats().operations.values.sum() } }
        val before = begun()
        for ((name, operation) in operations(lease)) {
            val scope = CoroutineScope(Dispatchers.Default).apply { cancel() }
            val running = scope.async(start = CoroutineStart.UNDISPATCHED) { operation() }
            running.join()
            assertTrue(running.getCompletionExceptionOrNull() is CancellationException, name)
        }
        assertEquals(before, begun())
    }

    @Test
    fun `withTimeout ends an operation long before the operation timeout`() = test {
        store.read("k")
        redis.obey("proxy swallow")
        val began = TimeSource.Monotonic.markNow()
        assertNull(withTimeoutOrNull(50) { store.read("k") })
        assertTrue(began.elapsedNow() < PATIENCE / 2)
        nothingIsUnderWay()
    }
}
