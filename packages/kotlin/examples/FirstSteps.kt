import kotlin.time.Duration.Companion.seconds
import systems.zlink.store.kotlin.*

suspend fun main() {
    LocationStore.open("memory:").use { store ->                   // "file:/data", or "redis://localhost" and a keyPrefix
        val claimed = store.write {
            ifMissing("actor/7")                                   // all conditions hold, or nothing changes
            put("actor/7", "node-1".encodeToByteArray(), retention = 30.seconds)
        }
        when (val result = store.read("actor/7")) {                // bytes, version, expiry and clock of one instant
            is ReadResult.Found -> println("${result.value.bytes.decodeToString()} until ${result.value.expiresAt}")
            is ReadResult.Missing -> println("nobody has it: $claimed")
        }
    }
}
