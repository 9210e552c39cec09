/** Kotlin (../bench.mjs). */
package bench

import java.util.concurrent.atomic.AtomicLong
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Mutation
import systems.zlink.store.kotlin.RelocationStore

private val KEYS = List(1_000) { "k$it" }
private val VALUE = ByteArray(256)
private val BLOB = ByteArray(64 * 1024 * 1024)

private class Stores(val records: LocationStore, val blobs: RelocationStore) {
    suspend fun work(what: String, at: Int) {
        when (what) {
            "read" -> records.read(KEYS[at])
            "put" -> records.write(mutations = listOf(Mutation.Put(KEYS[at], VALUE)))
            "blob-read" -> blobs.read("there")
            // A put of bytes that are there would move none of them.
            "blob-put" -> {
                blobs.delete("fresh")
                blobs.put("fresh", BLOB, 1.hours)
            }
            else -> error(what)
        }
    }
}

fun main(arguments: Array<String>) = runBlocking {
    val (url, prefix) = arguments
    val engines = mapOf("redis" to url, "memory" to "memory:").mapValues { (_, place) ->
        Stores(LocationStore.open(place, prefix, 1.minutes), RelocationStore.open(place, prefix, 1.minutes))
    }
    for (stores in engines.values) {
        stores.records.write(mutations = KEYS.map { Mutation.Put(it, VALUE) })
        stores.blobs.put("there", BLOB, 1.hours)
    }
    while (true) {
        val (what, engine, inFlight, seconds) = (readlnOrNull() ?: break).split(' ')
        println(measure(what, engines.getValue(engine), inFlight.toInt(), seconds.toDouble()))
    }
}

private suspend fun measure(what: String, stores: Stores, inFlight: Int, seconds: Double): Double {
    val done = AtomicLong()
    val began = System.nanoTime()
    val end = began + (seconds * 1e9).toLong()
    coroutineScope {
        repeat(inFlight) { lane ->
            launch(Dispatchers.Default) {
                var at = lane
                while (System.nanoTime() < end) {
                    stores.work(what, at++ % KEYS.size)
                    done.incrementAndGet()
                }
            }
        }
    }
    return done.get() / ((System.nanoTime() - began) / 1e9)
}
