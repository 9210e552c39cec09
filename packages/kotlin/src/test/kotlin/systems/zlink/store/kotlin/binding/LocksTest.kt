package systems.zlink.store.kotlin.binding

import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertSame
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.DistributedLocks
import systems.zlink.store.kotlin.InvalidArgumentException
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.ProjectState
import systems.zlink.store.kotlin.StoreException
import systems.zlink.store.kotlin.support.test

/** Locks as coroutines have them. */
@OptIn(kotlinx.coroutines.ExperimentalCoroutinesApi::class)
class LocksTest {
    private fun projectTest(body: suspend kotlinx.coroutines.CoroutineScope.(Project) -> Unit) =
        test { Project.open("memory:", "w", "p").use { body(it) } }

    @Test
    fun `a cancelled block releases its lock, and the cancellation comes out`() = projectTest { project ->
        val held = CompletableDeferred<Long>()
        val worker = async(start = CoroutineStart.UNDISPATCHED) {
            project.locks().withLock("k") { lease ->
                held.complete(lease.fencingToken)
                awaitCancellation()
            }
        }
        val token = held.await()
        assertNull(project.locks().acquire("k"))
        worker.cancelAndJoin()
        assertTrue(worker.isCancelled)
        val next = project.locks().acquire("k")
        assertTrue(next!!.fencingToken > token)
    }

    @Test
    fun `what the block throws goes before the error of the release, which stands beside it`() = projectTest { project ->
        val own = IllegalStateException("mine")
        val seen = runCatching {
            project.locks().withLock("k") { lease ->
                project.locks().attach(lease.id).release()
                throw own
            }
        }.exceptionOrNull()
        assertSame(own, seen)
        assertTrue(own.suppressed.single() is StoreException.LockLost)
        val lost = runCatching { project.locks().withLock("k") { project.locks().attach(it.id).release() } }.exceptionOrNull()
        assertTrue(lost is StoreException.LockLost, "$lost")
        assertEquals("done", project.locks().withLock("k") { "done" })
    }

    @Test
    fun `a lock that is held is unavailable, and a wait for it is served in order`() = projectTest { project ->
        val held = project.locks().acquire("k")!!
        assertTrue(runCatching { project.locks().withLock("k") { } }.exceptionOrNull() is StoreException.LockUnavailable)
        val order = mutableListOf<Int>()
        val waiters = (1..3).map { number ->
            launch(start = CoroutineStart.UNDISPATCHED) { project.locks().withLock("k", wait = 10.seconds) { order += number } }
        }
        held.release()
        held.release()
        waiters.forEach { it.join() }
        assertEquals(listOf(1, 2, 3), order)
    }

    @Test
    fun `a cancelled wait leaves its queue at once and no lease behind`() = projectTest { project ->
        val locks = project.locks()
        repeat(100) {
            val held = locks.acquire("k")!!
            val waiting = async(start = CoroutineStart.UNDISPATCHED) { locks.acquire("k", wait = 10.seconds) }
            waiting.cancelAndJoin()
            assertTrue(waiting.getCompletionExceptionOrNull() is CancellationException)
            held.release()
            val next = locks.acquire("k", wait = 10.seconds)
            assertNotNull(next)
            next!!.release()
        }
    }

    @Test
    fun `sixteen leases are the most of an invocation`() = projectTest { project ->
        val locks = project.locks()
        val held = (1..16).map { locks.acquire("k$it")!! }
        assertTrue(runCatching { locks.acquire("k17") }.exceptionOrNull() is InvalidArgumentException)
        held[0].release()
        assertNotNull(locks.acquire("k17"))
        assertTrue(runCatching { project.locks(within = (-1).seconds) }.exceptionOrNull() is InvalidArgumentException)
    }

    @Test
    fun `state and locks are opened by URL alone, and closed through their project`() = test {
        val locks = DistributedLocks.open("memory:alone", "w", "p")
        val state = ProjectState.open("memory:alone", "w", "p")
        val lease = locks.acquire("k", lease = 5.seconds)!!
        assertTrue(lease.renew(60.seconds) > lease.renew(5.seconds))
        assertEquals(1, state.namespace("n").set("k", "1", expectedVersion = 0).version)
        assertTrue(runCatching { state.namespace("n").set("k", "1", expectedVersion = 0) }.exceptionOrNull() is StoreException.StateConflict)
        assertTrue(state.namespace("n").delete("k"))
        locks.project.close()
        state.project.shutdown()
        assertTrue(runCatching { locks.acquire("k") }.exceptionOrNull() is StoreException.Closed)
        assertTrue(runCatching { state.namespace("n").get("k") }.exceptionOrNull() is StoreException.Closed)
    }
}
