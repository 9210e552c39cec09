package systems.zlink.store.kotlin.binding

import kotlin.coroutines.CoroutineContext
import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.RelocationStore

/** Leaves in the midst of operations of all kinds, on all kinds of threads; some of them can never end. */
fun main(arguments: Array<String>) {
    val (url, silentUrl, way) = arguments
    val stores = listOf("memory:", url, silentUrl).map { Each(it) }
    runBlocking { stores.dropLast(1).forEach { it.project.ping() } }
    for ((at, context) in (runningWhereTheyStand() + leadingAway()).values.withIndex()) {
        for (each in stores) {
            // Those in memory go on here until they pause.
            Thread { repeat(20) { each.work(context, "$at-$it") } }.apply { isDaemon = true }.start()
        }
    }
    runBlocking { while (stores[1].records.stats().operations["read"]!! < 300) stores[1].records.ping() }
    println("leaving")
    when (way) {
        "exit" -> exitProcess(0)
        "close" -> {
            for (each in stores.dropLast(1)) listOf(each.records, each.blobs, each.project).forEach { it.close() }
            exitProcess(0)
        }
        // Only daemons are left.
        "return" -> return
    }
}

private class Each(url: String) {
    val records = LocationStore.open(url, "t", 60.seconds)
    val blobs = RelocationStore.open(url, "t", 60.seconds)
    val project = Project.open(url, "w", "p", 60.seconds)

    fun work(context: CoroutineContext, key: String) {
        CoroutineScope(context).launch {
            // Until the store is closed.
            runCatching {
                while (true) {
                    records.read(key)
                    records.write { put(key, ByteArray(1_000)) }
                    blobs.put(key, ByteArray(100_000), 60.seconds)
                    blobs.read(key)
                    project.locks().withLock(key) { project.state.namespace("n").set(key, "1") }
                    // In memory nothing suspends.
                    delay(1.milliseconds)
                }
            }
        }
    }
}
