package systems.zlink.store.kotlin.binding

import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava

class FlatTest {
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
