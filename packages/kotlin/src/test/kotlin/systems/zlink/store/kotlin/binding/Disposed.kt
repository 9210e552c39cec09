package systems.zlink.store.kotlin.binding

import com.sun.jna.Memory
import java.lang.ref.Reference
import kotlinx.coroutines.runBlocking
import systems.zlink.store.kotlin.LocationStore
import systems.zlink.store.kotlin.ReadResult

/** What calls are lent, by its size. */
private const val LENT = 1_024L

/** Somebody frees what calls are lent, over and over, and the calls between are right. */
fun main() {
    val field = Memory::class.java.getDeclaredField("allocatedMemory").apply { isAccessible = true }
    val allocated = field.get(null) as Map<*, *>
    fun freeAll() = allocated.values.mapNotNull { (it as Reference<*>).get() as Memory? }.filter { it.size() == LENT }.onEach { it.close() }
    var right = 0
    LocationStore.open("memory:").use { store ->
        runBlocking {
            repeat(1_000) {
                check(freeAll().isNotEmpty() || it == 0) { "nothing is lent" }
                runCatching { store.read("") }
                store.write { put("k$it", ByteArray(100) { 7 }) }
                if (store.read("k$it").let { read -> read is ReadResult.Found && read.value.bytes.all { 7.toByte() == it } }) right++
            }
        }
    }
    println(right)
}
