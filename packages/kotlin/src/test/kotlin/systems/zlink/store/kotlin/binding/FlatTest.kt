package systems.zlink.store.kotlin.binding

import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava

class FlatTest {
    @Test
    fun `a hundred thousand calls leave memory as it was`() {
        TestServer().use { redis ->
            val said = runJava("${javaClass.packageName}.FlatKt", redis.url, "100000")
            assertTrue(said.endsWith("\nflat\n"), said)
        }
    }
}
