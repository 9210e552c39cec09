/**
 * Two workers take turns with a lock; one of them hangs, and what it writes afterwards is refused by its fencing token. Here
 * everything runs on the embedded engine in memory; for workers in several processes, only the URL changes.
 */

import kotlin.system.exitProcess
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import systems.zlink.store.kotlin.LockLease
import systems.zlink.store.kotlin.Project
import systems.zlink.store.kotlin.StateNamespace
import systems.zlink.store.kotlin.StoreException

/** What has been paid of an invoice, and the largest fencing token that it has seen. */
private class Paid(val amount: Long, val token: Long, val version: Long) {
    fun toJson() = """{"amount":$amount,"token":$token}"""
}

private suspend fun StateNamespace.paid(number: String): Paid {
    val entry = get(number) ?: return Paid(0, 0, 0)
    val (amount, token) = Regex("\\d+").findAll(entry.json).map { it.value.toLong() }.toList()
    return Paid(amount, token, entry.version)
}

/** What the lock guards: it refuses a fencing token smaller than one it has seen. */
private suspend fun StateNamespace.pay(number: String, amount: Long, token: Long): String {
    while (true) {
        val seen = paid(number)
        if (seen.token > token) {
            return "refused"
        }
        try {
            // Whoever is late in spite of the lock meets the version that it has not seen.
            set(number, Paid(seen.amount + amount, token, 0).toJson(), expectedVersion = seen.version)
            return "accepted"
        } catch (_: StoreException.StateConflict) {
            // Read it again.
        }
    }
}

private fun LockLease.shortened() = "…" + fencingToken.toString().takeLast(7)

private suspend fun work(name: String, project: Project, invoices: StateNamespace) {
    val locks = project.locks()
    repeat(3) { turn ->
        locks.withLock("INV-1", namespace = "invoice", wait = 5.seconds) { lease ->
            val said = invoices.pay("INV-1", 10, lease.fencingToken)
            println("  $name, turn ${turn + 1}: token ${lease.shortened()}, payment $said")
            delay(50.milliseconds)
        }
    }
}

private fun open() = Project.open("memory:turns", workspace = "acme", project = "billing")

suspend fun main() {
    open().use { red ->
        open().use { blue ->
            val invoices = red.state.namespace("invoices")

            println("Two workers want the same lock; each waits for its turn:")
            coroutineScope {
                launch { work("red", red, invoices) }
                launch { work("blue", blue, invoices) }
            }

            println("Red takes the lock and hangs. An operator frees it by its id, and blue goes on:")
            val stale = checkNotNull(red.locks().acquire("INV-1", namespace = "invoice"))
            println("  red has token ${stale.shortened()}")
            blue.locks().attach(stale.id).release()
            blue.locks().withLock("INV-1", namespace = "invoice") { lease ->
                val said = invoices.pay("INV-1", 10, lease.fencingToken)
                println("  blue has token ${lease.shortened()}, payment $said")
            }

            println("Red wakes up and does not know that its time is over:")
            println("  red pays with token ${stale.shortened()}: ${invoices.pay("INV-1", 10, stale.fencingToken)}")
            try {
                stale.release()
                println("  red releases: done")
            } catch (_: StoreException.LockLost) {
                println("  red releases: the lease was lost")
            }

            val paid = invoices.paid("INV-1")
            println("Paid ${paid.amount} in ${paid.version} writes: seven accepted, none twice, none by the stale holder.")
            if (paid.amount != 70L || paid.version != 7L) {
                exitProcess(1)
            }
        }
    }
}
