package systems.zlink.store.kotlin.support

import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.atomic.AtomicInteger

/** The engines that every scenario runs against, and what one can do, or needs, beyond the others. */
enum class Engine(val capabilities: Set<String>) {
    MEMORY(setOf()),
    FILE(setOf("survives-reopen")),
    REDIS(setOf("survives-reopen", "needs-key-prefix"));

    override fun toString(): String = name.lowercase()

    /** A spot that no other test uses: stores opened there with equal prefixes see the same data. */
    fun newPlace(redis: TestServer): Place {
        val unique = "${ProcessHandle.current().pid()}-${PLACES.incrementAndGet()}"
        return when (this) {
            MEMORY -> Place(this, "memory:$unique")
            FILE -> Files.createTempDirectory("zlink-store-test-").let { Place(this, "file:$it", folder = it) }
            REDIS -> Place(this, redis.url, inFront = "$unique.")
        }
    }

    private companion object {
        val PLACES = AtomicInteger()
    }
}

/** One spot; [inFront] is put in front of key prefixes. */
class Place(val engine: Engine, val url: String, val inFront: String = "", private val folder: Path? = null) : AutoCloseable {
    override fun close() {
        folder?.toFile()?.deleteRecursively()
    }
}
