package systems.zlink.store.kotlin.binding

import com.sun.jna.Memory
import kotlinx.coroutines.runBlocking
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.ReadResult

/** JNA frees all that it has allocated, over and over, and the calls between are right. */
fun main() {
    var right = 0
    LocationStore.open("memory:").use { store ->
        runBlocking {
            repeat(1_000) {
                Memory.disposeAll()
                runCatching { store.read("") }
                store.write { put("k$it", ByteArray(100) { 7 }) }
                if (store.read("k$it").let { read -> read is ReadResult.Found && read.value.bytes.all { 7.toByte() == it } }) right++
            }
        }
    }
    println(right)
}
