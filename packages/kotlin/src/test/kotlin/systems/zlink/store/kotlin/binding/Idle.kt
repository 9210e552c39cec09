package systems.zlink.store.kotlin.binding

import kotlinx.coroutines.runBlocking
import systems.zlink.store.kotlin.LocationStore

/** Leaves a store open behind it. */
fun main(arguments: Array<String>) {
    val store = LocationStore.open(arguments[0], "t")
    runBlocking { store.read("k") }
    println("done")
}
