package systems.zlink.store.kotlin.binding

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.concurrent.thread
import kotlin.coroutines.Continuation
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.support.PATIENCE
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava
import systems.zlink.store.kotlin.support.test

/** What comes behind a call never runs on the native library's threads. */
class ThreadsTest {
    @Test
    fun `coroutines that block delay no other, also where no dispatcher leads away`() = test {
        TestServer().use { redis ->
            LocationStore.open(redis.url, "t").use { store ->
                val blocked = CountDownLatch(16)
                val end = CountDownLatch(1)
                val threads = ConcurrentHashMap.newKeySet<String>()
                val block: suspend () -> Unit = {
                    store.read("k")
                    threads += Thread.currentThread().name
                    blocked.countDown()
                    // The core has fewer threads than there are of these.
                    end.await(PATIENCE.inWholeSeconds, TimeUnit.SECONDS)
                }
                // Dispatchers.Default is shared: those of it that are blocked are its own business, so this takes one only.
                repeat(15) { CoroutineScope(Dispatchers.IO).launch { block() } }
                // An answer that is there at once is given on the thread that asks.
                thread(isDaemon = true) {
                    block.startCoroutine(object : Continuation<Unit> {
                        override val context: CoroutineContext = EmptyCoroutineContext
                        override fun resumeWith(result: Result<Unit>) = Unit
                    })
                }
                blocked.await()
                assertTrue(threads.none { it.startsWith("zlink") }, "$threads")
                repeat(100) { store.read("k") }
                end.countDown()
                for (context in listOf(Dispatchers.Unconfined, Dispatchers.Default, Dispatchers.IO)) {
                    val name = CoroutineScope(context).async { store.read("k").let { Thread.currentThread().name } }.await()
                    assertTrue(!name.startsWith("zlink"), name)
                }
            }
        }
    }

    @Test
    fun `runBlocking inside of what comes behind a call works, nested too`() = test {
        TestServer().use { redis ->
            LocationStore.open(redis.url, "t").use { store ->
                (1..100).map {
                    async(Dispatchers.IO) {
                        store.read("k")
                        runBlocking { store.read("k").also { runBlocking { store.read("k") } } }
                    }
                }.awaitAll()
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
