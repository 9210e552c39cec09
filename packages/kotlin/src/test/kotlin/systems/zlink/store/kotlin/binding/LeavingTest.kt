package systems.zlink.store.kotlin.binding

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.params.ParameterizedTest
import org.junit.jupiter.params.provider.ValueSource
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.runJava

class LeavingTest {
    @ParameterizedTest
    @ValueSource(strings = ["exit", "close", "return"])
    fun `a process that ends with operations pending ends well`(way: String) {
        TestServer("--proxy").use { redis ->
            redis.obey("proxy swallow")
            repeat(ROUNDS) {
                val said = runJava("${javaClass.packageName}.LeavingKt", redis.url, redis.proxyUrl, way)
                assertEquals("leaving\n", said)
            }
        }
    }

    private companion object {
        val ROUNDS = Integer.getInteger("zlink.leaving.rounds", 3)
    }
}
