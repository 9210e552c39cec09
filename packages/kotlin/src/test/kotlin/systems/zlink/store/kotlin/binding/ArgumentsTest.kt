package systems.zlink.store.kotlin.binding

import kotlin.time.Duration.Companion.hours
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertThrows
import org.junit.jupiter.api.Test
import systems.zlink.store.kotlin.Condition
import systems.zlink.store.kotlin.InvalidArgumentException
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Mutation
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.RelocationStore
import systems.zlink.store.kotlin.internal.ffi.ProjectOptions
import systems.zlink.store.kotlin.internal.ffi.StoreOptions
import systems.zlink.store.kotlin.support.TestServer
import systems.zlink.store.kotlin.support.eventually
import systems.zlink.store.kotlin.support.test
import systems.zlink.store.kotlin.internal.ffi.Condition as NativeCondition
import systems.zlink.store.kotlin.internal.ffi.LocationStore as NativeLocations
import systems.zlink.store.kotlin.internal.ffi.Mutation as NativeMutation
import systems.zlink.store.kotlin.internal.ffi.Project as NativeProject
import systems.zlink.store.kotlin.internal.ffi.RelocationStore as NativeBlobs

/** Arguments that cannot be handed over, or should not be. */
class ArgumentsTest {
    @Test
    fun `what is far too long is refused by name, before anything is copied`() = test {
        val long = "a".repeat(10_000_000)
        val longer = long + long + "a"
        val large = ByteArray(100_000_000)
        val project = Project.open("memory:", "w", "p")
        val state = project.state.namespace("n")
        val store = LocationStore.open("memory:")
        val blobs = RelocationStore.open("memory:")
        // In all too long for a buffer: 2 GiB, and 3 bytes for a character.
        val wrong = mapOf<String, List<suspend () -> Unit>>(
            "key" to listOf(
                { store.read(longer) }, { store.read(long) }, { state.get(longer) }, { state.set(longer, "1") }, { state.delete(longer) },
                { project.locks().acquire(longer) },
            ),
            "namespace" to listOf({ project.locks().acquire("k", longer) }, { project.state.namespace(longer) }),
            "value" to listOf({ state.set("k", longer) }, { state.set("k", long) }),
            "prefix" to listOf({ store.scan(longer) }, { store.scan(long) }),
            "cursor" to listOf({ store.scan(cursor = longer) }),
            "reference" to listOf({ blobs.put(longer, ByteArray(0), 1.hours) }, { blobs.read(longer) }, { blobs.delete(long) }),
            "payload" to listOf({ blobs.put("r", large, 1.hours) }),
            "mutations[0].key" to listOf({ store.write { delete(longer) } }),
            "mutations[33].key" to listOf({ store.write(mutations = List(200) { Mutation.Delete(long) }) }),
            "mutations[9].bytes" to listOf({ store.write(mutations = List(40) { Mutation.Put("k", large) }) }),
            "conditions[33].key" to listOf({ store.write(conditions = List(200) { Condition.Missing(long) }) }),
            "conditions[33].expected" to listOf({ store.write(conditions = List(200) { Condition.Version("k", long) }) }),
            // Also together.
            "mutations[13].key" to
                listOf({ store.write(List(20) { Condition.Missing(long) }, List(200) { Mutation.Put(long, ByteArray(0)) }) }),
        )
        for ((argument, calls) in wrong) {
            for (call in calls) {
                val error = runCatching { call() }.exceptionOrNull()
                assertEquals(argument, (error as? InvalidArgumentException)?.argument, "$error")
            }
        }
        for (each in listOf(store, blobs, project)) {
            assertEquals(0L, each.stats().operations.values.sum())
            each.close()
        }
    }

    @Test
    fun `a call whose arguments cannot be converted leaves no handle behind`() = test {
        // The generated code refuses a lone surrogate when it converts it. The stores' last handles end their connections.
        val lone = "\uD800"
        TestServer().use { redis ->
            suspend fun clients() = redis.obey("clients")["clients"].asInt
            val before = clients()
            val store = NativeLocations.open(redis.url, StoreOptions("t", null))
            val blobs = NativeBlobs.open(redis.url, StoreOptions("t", null))
            val project = NativeProject.open(redis.url, "w", "p", ProjectOptions(null))
            val (state, locks) = project.state() to project.locks(null)
            val namespace = state.namespace("n")
            store.ping().use { it.wait() }
            blobs.ping().use { it.wait() }
            project.ping().use { it.wait() }
            eventually("connected") { clients() > before }
            val calls: List<() -> Any> = listOf(
                { store.read(lone) },
                { store.scan("a", lone, 1) },
                { store.write(listOf(NativeCondition.Missing("a")), listOf(NativeMutation.Delete(lone))) },
                { store.write(listOf(NativeCondition.Missing(lone)), listOf()) },
                { blobs.put(lone, ByteArray(10), 1) },
                { blobs.read(lone) },
                { blobs.renew(lone, 1) },
                { blobs.delete(lone) },
                { state.namespace(lone) },
                { namespace.get(lone) },
                { namespace.set("a", lone, null, null) },
                { namespace.delete(lone, null) },
                { locks.acquire("a", lone, null, null) },
                { locks.attach(lone) },
            )
            for (call in calls) repeat(10) { assertThrows(java.nio.charset.CharacterCodingException::class.java) { call() } }
            listOf(store, blobs, project, state, locks, namespace).forEach { it.close() }
            eventually("all connections are closed") { clients() == before }
        }
    }
}
