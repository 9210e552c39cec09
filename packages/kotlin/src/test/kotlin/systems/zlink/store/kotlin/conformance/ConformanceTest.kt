package systems.zlink.store.kotlin.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonParser
import java.nio.file.Files
import java.util.concurrent.ConcurrentSkipListSet
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.DynamicTest
import org.junit.jupiter.api.DynamicTest.dynamicTest
import org.junit.jupiter.api.TestFactory
import org.junit.jupiter.api.parallel.Execution
import org.junit.jupiter.api.parallel.ExecutionMode
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.RelocationStore
import systems.zlink.store.kotlin.support.Engine
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.inProject

/** Every scenario of tests/conformance against every engine: one test each, `engine/group/name`. */
@Execution(ExecutionMode.CONCURRENT)
class ConformanceTest {
    @TestFactory
    fun scenarios(): List<DynamicTest> = Engine.entries.flatMap { engine ->
        SCENARIOS.map { (name, steps) ->
            dynamicTest("$engine/$name") {
                EXECUTED.getValue(engine).add(name)
                engine.newPlace(redis).use { place ->
                    Run(place).use { run -> runBlocking { withTimeout(Run.LONGEST) { run.steps(steps) } } }
                }
            }
        }
    }

    companion object {
        private val EXECUTED = Engine.entries.associateWith { ConcurrentSkipListSet<String>() }
        private val SCENARIOS: Map<String, JsonArray> = Files.list(inProject("tests", "conformance")).use { files ->
            files.map { "$it" }.filter { it.endsWith(".json") && !it.endsWith(".schema.json") }.toList()
        }.map { JsonParser.parseString(Files.readString(java.nio.file.Path.of(it))).asJsonObject }.flatMap { group ->
            group.getAsJsonArray("scenarios").map { it.asJsonObject }.map { scenario ->
                "${group["group"].asString}/${scenario["name"].asString}" to scenario.getAsJsonArray("steps")
            }
        }.toMap().toSortedMap()

        private lateinit var redis: TestServer

        @BeforeAll
        @JvmStatic
        fun startRedis() {
            redis = TestServer()
            runBlocking { warmUp() }
        }

        /** The first calls load the native library and hundreds of classes, for longer than what some scenarios put may live. */
        private suspend fun warmUp() {
            LocationStore.open(redis.url, "warm").use { store ->
                store.write { put("k", ByteArray(1)) }
                store.read("k")
                store.scan()
            }
            RelocationStore.open(redis.url, "warm").use { store ->
                store.put("r", ByteArray(1), 1.minutes)
                store.renew("r", 1.minutes)
                store.read("r")
            }
            Project.open(redis.url, "warm", "p").use { project ->
                project.state.namespace("n").set("k", "1")
                project.locks().withLock("k") { it.renew() }
            }
        }

        /** What was executed, for `compare.mjs`. */
        @AfterAll
        @JvmStatic
        fun writeLists() {
            redis.close()
            val folder = Files.createDirectories(inProject("target", "conformance"))
            EXECUTED.filterValues { it.size == SCENARIOS.size }.forEach { (engine, names) ->
                Files.write(folder.resolve("kotlin-$engine.txt"), names)
            }
        }
    }
}
