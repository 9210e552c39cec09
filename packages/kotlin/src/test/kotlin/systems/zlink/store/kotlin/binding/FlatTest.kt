package systems.zlink.store.kotlin.binding

import com.sun.jna.Memory
import java.util.concurrent.Executor
import kotlin.time.Duration.Companion.milliseconds
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava
import systems.zlink.store.kotlin.support.test

/** What the pool may keep, and a few that JNA needs for itself. */
private const val KEPT = 64 + 32

class FlatTest {
    /** What JNA has allocated for objects that the garbage collector has not found yet. */
    private fun allocations(): Int {
        val all = Memory::class.java.getDeclaredField("allocatedMemory").apply { isAccessible = true }
        return (all.get(null) as Map<*, *>).size
    }

    @Test
    fun `calls allocate no native memory of their own, which would be freed late`() = test {
        LocationStore.open("memory:").use { store ->
            suspend fun calls(count: Int) = repeat(count) {
                store.write { put("k", ByteArray(10)) }
                store.read("k")
                runCatching { store.read("") }
            }
            calls(10)
            val before = allocations()
            calls(1_000)
            // Less than one in a hundred calls.
            assertTrue(allocations() - before < 30, "${allocations() - before} more")
        }
    }

    @Test
    fun `threads that come and go leave no native memory behind`() = test {
        val kinds = listOfNotNull(Executor { Thread(it).start() }, virtualThreads()).map { it.asCoroutineDispatcher() }
        LocationStore.open("memory:").use { store ->
            Project.open("memory:", "w", "p").use { project ->
                for (threads in kinds) {
                    // What is kept is bounded, whatever had run before.
                    repeat(5) {
                        coroutineScope { repeat(1_000) { launch(threads) { runCatching { store.read(if (it % 2 == 0) "" else "k") } } } }
                    }
                    assertTrue(allocations() <= KEPT, "${allocations()}")
                    // Objects that nobody has closed are freed on a thread of the virtual machine, which forgets what it had.
                    repeat(5) {
                        repeat(1_000) { project.locks() }
                        System.gc()
                        repeat(20) {
                            assertTrue(allocations() <= KEPT, "${allocations()}")
                            delay(5.milliseconds)
                        }
                    }
                }
            }
        }
    }

    @Test
    fun `memory that others free between calls is not used again`() {
        assertEquals("1000\n", runJava("${javaClass.packageName}.DisposedKt"))
    }

    @Test
    fun `a hundred thousand calls, one in ten of them cancelled, leave memory as it was`() {
        // A heap of fixed size, all of it touched: what grows then is not the heap, and garbage is collected seldom, as in a process
        // that makes little else. And one arena, so that it matters less which thread happens to allocate.
        val options = listOf("-Xms256m", "-Xmx256m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC")
        TestServer().use { redis ->
            val arguments = arrayOf(redis.url, "100000")
            val said = runJava(
                "${javaClass.packageName}.FlatKt", *arguments, options = options, by = listOf("env", "MALLOC_ARENA_MAX=1"),
            )
            assertTrue(said.endsWith("\nflat\n"), said)
        }
    }
}
