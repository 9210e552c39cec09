package systems.zlink.store.kotlin.binding

import java.util.concurrent.ConcurrentLinkedQueue
import kotlin.coroutines.CoroutineContext
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.joinAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield
import org.junit.jupiter.api.AfterEach
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertNotNull
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.DistributedLocks
import systems.zlink.store.kotlin.LockLease
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.ProjectState
import systems.zlink.store.kotlin.StoreException
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.eventually
import systems.zlink.store.kotlin.support.test

/** Whatever is cancelled when, a lock is free soon after: long before its lease, of a minute, would end. */
@OptIn(ExperimentalCoroutinesApi::class)
class GivenBackTest {
    private val redis = TestServer("--proxy")
    private val projects = listOf("memory:", redis.url).map { Project.open(it, "w", "p", 60.seconds) }
    private val lease = 60.seconds

    @AfterEach
    fun stop() {
        projects.forEach { it.close() }
        redis.close()
    }

    private suspend fun Project.becomesFree(said: String) {
        val next = locks().acquire("k", wait = 10.seconds, lease = lease)
        assertNotNull(next, "${this::class.simpleName} $said")
        next!!.release()
    }

    /** How a user may hold a lock for the run of a block. */
    private val ways: Map<String, suspend (DistributedLocks, suspend () -> Unit) -> Unit> = mapOf(
        "withLock" to { locks, block -> locks.withLock("k", lease = lease) { block() } },
        "finally" to { locks, block ->
            val held = locks.acquire("k", lease = lease)!!
            try {
                block()
            } finally {
                withContext(NonCancellable) { held.release() }
            }
        },
        "use" to { locks, block -> locks.acquire("k", lease = lease)!!.use { block() } },
    )

    @Test
    fun `a coroutine that is cancelled in its block gives the lock back, however it holds it`() = test {
        for (project in projects) {
            for ((name, hold) in ways) {
                for (context in listOf(Dispatchers.Default, Dispatchers.Unconfined)) {
                    val holds = CompletableDeferred<Unit>()
                    val worker = CoroutineScope(context).launch {
                        hold(project.locks()) {
                            holds.complete(Unit)
                            awaitCancellation()
                        }
                    }
                    holds.await()
                    assertNull(project.locks().acquire("k"))
                    worker.cancelAndJoin()
                    project.becomesFree(name)
                }
            }
        }
    }

    @Test
    fun `a cancellation that meets the acquire, the block or the release leaves no lock held`() = test {
        for (project in projects) {
            for ((name, hold) in ways) {
                repeat(200) { round ->
                    val worker = CoroutineScope(Dispatchers.Default).launch(start = CoroutineStart.UNDISPATCHED) {
                        hold(project.locks()) { if (round % 3 == 0) yield() }
                    }
                    repeat(round % 23) { yield() }
                    if (round % 5 == 0) project.ping()
                    worker.cancelAndJoin()
                    project.becomesFree("$name, round $round")
                }
            }
        }
    }

    @Test
    fun `a wait for a release that is cancelled ends at once, and the release goes on`() = test {
        val project = Project.open(redis.proxyUrl, "w", "p", 60.seconds)
        val held = project.locks().acquire("k", lease = lease)!!
        redis.obey("proxy delay requests 300")
        val releasing = CoroutineScope(Dispatchers.Default).async(start = CoroutineStart.UNDISPATCHED) { held.release() }
        assertTrue(releasing.isActive)
        releasing.cancelAndJoin()
        assertTrue(releasing.getCompletionExceptionOrNull() is CancellationException)
        redis.obey("proxy delay requests 0")
        project.becomesFree("after a cancelled release")
        project.close()
    }

    /** Runs what it was given when it is told to. */
    private class ByHand : CoroutineDispatcher() {
        val given = ConcurrentLinkedQueue<Runnable>()

        override fun dispatch(context: CoroutineContext, block: Runnable) {
            given += block
        }

        fun runAll() = generateSequence { given.poll() }.forEach { it.run() }
    }

    @Test
    fun `a lease that is there but not taken yet is given back when the coroutine is cancelled`() = test {
        for (project in projects) {
            val locks = project.locks()
            repeat(50) {
                val held = project.locks().acquire("k", lease = lease)!!
                val hands = ByHand()
                var got: LockLease? = null
                val waiting = CoroutineScope(hands).launch { got = locks.acquire("k", wait = 10.seconds, lease = lease) }
                hands.runAll()
                held.release()
                // It is the one who waits longest that has it now.
                eventually("the lease is there") { hands.given.isNotEmpty() }
                waiting.cancel()
                hands.runAll()
                waiting.join()
                assertNull(got)
                project.becomesFree("not taken")
            }
            // Nor has it kept the places of this invocation.
            val places = List(16) { locks.acquire("place-$it", lease = lease)!! }
            places.forEach { it.release() }
        }
    }

    @Test
    fun `acquires that are cancelled free their places at once`() = test {
        for (project in projects) {
            val held = project.locks().acquire("k", lease = lease)!!
            val locks = project.locks()
            repeat(20) {
                val waiting = List(16) { CoroutineScope(Dispatchers.Default).launch(start = CoroutineStart.UNDISPATCHED) { locks.acquire("k", wait = 10.seconds) } }
                waiting.forEach { it.cancel() }
                waiting.joinAll()
                val places = List(16) { locks.acquire("place-$it", lease = lease) }
                places.forEach { it!!.release() }
            }
            held.release()
        }
    }

    @Test
    fun `locks and state that were opened by URL close their project, and others do not`() = test {
        val locks = DistributedLocks.open("memory:", "w", "p")
        locks.use { opened -> opened.acquire("k")!!.use { assertEquals("k", it.key) } }
        assertTrue(runCatching { locks.acquire("k") }.exceptionOrNull() is StoreException.Closed)
        val state = ProjectState.open("memory:", "w", "p")
        state.use { it.namespace("n").set("k", "1") }
        assertTrue(runCatching { state.namespace("n").get("k") }.exceptionOrNull() is StoreException.Closed)

        val project = projects[0]
        project.locks().use { it.acquire("k")!!.release() }
        project.state.use { it.namespace("n").set("k", "1") }
        assertEquals("1", project.state.namespace("n").get("k")!!.json)
        // A lease that was lost says so when it is closed, as withLock does.
        val lost = project.locks().acquire("k")!!
        project.locks().attach(lost.id).release()
        assertTrue(runCatching { lost.use { } }.exceptionOrNull() is StoreException.LockLost)
    }
}
