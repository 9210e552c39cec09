package systems.zlink.store.kotlin.binding

import com.sun.jna.Memory
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava
import systems.zlink.store.kotlin.support.test

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
            // Less than one in a hundred calls: what threads have.
            assertTrue(allocations() - before < 30, "${allocations() - before} more")
        }
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
