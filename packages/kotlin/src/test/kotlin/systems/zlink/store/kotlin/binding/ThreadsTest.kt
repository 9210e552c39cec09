package systems.zlink.store.kotlin.binding

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.coroutines.Continuation
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeoutOrNull
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.support.PATIENCE
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava
import systems.zlink.store.kotlin.support.test

/** What comes behind a call never runs on the native library's threads, and may block wherever it runs. */
class ThreadsTest {
    /** Begins it on this thread, as nobody's child: also where there is no dispatcher. */
    private fun begin(context: CoroutineContext, block: suspend () -> Unit): Deferred<Unit> {
        val ended = CompletableDeferred<Unit>()
        block.startCoroutine(object : Continuation<Unit> {
            override val context = context

            override fun resumeWith(result: Result<Unit>) {
                result.fold(ended::complete, ended::completeExceptionally)
            }
        })
        return ended
    }

    private fun threads() = ConcurrentHashMap.newKeySet<String>()

    private fun assertNotNative(threads: Set<String>, said: String = "") =
        assertTrue(threads.isNotEmpty() && threads.none { it.startsWith("zlink") }, "$said: $threads")

    /** Begins what waits for the server: none of them has its answer at once, and goes on on this thread. */
    private fun <T> TestServer.beginAll(begin: () -> T): T {
        obey("pause")
        return begin().also { obey("resume") }
    }

    /** More than the core has threads, and, all together, more than `Dispatchers.IO` has. */
    private val many = 20

    @Test
    fun `code that blocks where it is resumed delays no operation, wherever that is resumed`() = test {
        TestServer().use { redis ->
            LocationStore.open(redis.url, "t", 60.seconds).use { store ->
                store.read("k")
                val standing = runningWhereTheyStand()
                val (blocked, end) = CountDownLatch(many * standing.size) to CountDownLatch(1)
                val threads = threads()
                val blocking = redis.beginAll {
                    standing.values.flatMap { context ->
                        List(many) {
                            begin(context) {
                                store.read("k")
                                threads += Thread.currentThread().name
                                blocked.countDown()
                                end.await(PATIENCE.inWholeSeconds * 4, TimeUnit.SECONDS)
                            }
                        }
                    }
                }
                assertTrue(blocked.await(PATIENCE.inWholeSeconds, TimeUnit.SECONDS), "$blocked")
                assertNotNative(threads)
                LocationStore.open(redis.url, "other").use { other ->
                    for ((name, context) in standing + leadingAway()) {
                        val later = threads()
                        List(many) {
                            begin(context) {
                                for (one in listOf(store, other)) one.read("k")
                                later += Thread.currentThread().name
                            }
                        }.awaitAll()
                        assertNotNative(later, name)
                    }
                    repeat(100) { store.read("k") }
                }
                end.countDown()
                blocking.awaitAll()
            }
        }
    }

    @Test
    fun `stores are closed, and others used, by code that blocks behind a call, wherever it is`() = test {
        TestServer().use { redis ->
            for ((name, context) in runningWhereTheyStand() + leadingAway()) {
                val ended = List(many) { number ->
                    val store = LocationStore.open(redis.url, "t$number")
                    begin(context) {
                        store.read("k")
                        runBlocking { store.read("k").also { runBlocking { store.ping() } } }
                        store.close()
                    }
                }
                // Names what hangs.
                ended.forEach { assertEquals(Unit, withTimeoutOrNull(PATIENCE) { it.await() }, name) }
            }
        }
    }

    @Test
    fun `a dispatcher that blocks when it is given a task delays no operation`() = test {
        TestServer().use { redis ->
            LocationStore.open(redis.url, "t", 60.seconds).use { store ->
                store.read("k")
                val (stuck, end) = CountDownLatch(many) to CountDownLatch(1)
                val starter = Thread.currentThread()
                val blocks = object : CoroutineDispatcher() {
                    override fun dispatch(context: CoroutineContext, block: Runnable) {
                        if (Thread.currentThread() != starter) {
                            stuck.countDown()
                            end.await(PATIENCE.inWholeSeconds * 4, TimeUnit.SECONDS)
                        }
                        block.run()
                    }
                }
                val waiting = redis.beginAll { List(many) { begin(blocks) { store.read("k") } } }
                assertTrue(stuck.await(PATIENCE.inWholeSeconds, TimeUnit.SECONDS), "$stuck")
                repeat(100) { store.read("k") }
                end.countDown()
                waiting.awaitAll()
            }
        }
    }

    @Test
    fun `an idle store keeps no process alive`() {
        TestServer().use { redis -> assertEquals("done\n", runJava("${javaClass.packageName}.IdleKt", redis.url)) }
    }

    @Test
    fun `many coroutines share a store`() = test {
        Project.open("memory:", "w", "p").use { project ->
            val counter = project.state.namespace("n")
            (1..50).map {
                async(Dispatchers.Default) {
                    project.locks().withLock("k", wait = 10.seconds) {
                        val before = counter.get("c")?.json?.toInt() ?: 0
                        counter.set("c", "${before + 1}")
                    }
                }
            }.awaitAll()
            assertEquals("50", counter.get("c")?.json)
        }
    }
}
