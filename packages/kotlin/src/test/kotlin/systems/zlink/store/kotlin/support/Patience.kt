package systems.zlink.store.kotlin.support

import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout

/** Long enough for anything but a hang, so that a busy machine fails nothing. */
val PATIENCE = 30.seconds

/** A test that suspends. */
fun test(body: suspend CoroutineScope.() -> Unit) = runBlocking { withTimeout(PATIENCE * 4) { body() } }

/** Waits until it is so. */
suspend fun eventually(said: String, holds: suspend () -> Boolean) = withContext(Dispatchers.Default) {
    val end = System.nanoTime() + PATIENCE.inWholeNanoseconds
    while (!holds()) {
        if (System.nanoTime() > end) throw AssertionError("not so: $said")
        delay(2.milliseconds)
    }
}
