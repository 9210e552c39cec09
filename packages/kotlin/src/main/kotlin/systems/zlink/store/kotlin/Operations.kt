package systems.zlink.store.kotlin

import java.util.concurrent.CountDownLatch
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Deferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ExperimentalCoroutinesApi
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive

/**
 * Makes one suspending call of an operation's steps. The argument errors come first, then the cancellation, then I/O. However it
 * ends, the operation is freed, which cancels what is still under way and gives back a lease that nobody took.
 */
internal suspend inline fun <O : AutoCloseable, R> run(
    make: () -> O,
    start: (O) -> Boolean,
    wait: suspend (O) -> Unit,
    result: (O) -> R,
): R = translated {
    make().use { operation ->
        currentCoroutineContext().ensureActive()
        if (!start(operation)) {
            wait(operation)
        }
        result(operation)
    }
}

/** Begins [work] within this call, and lets it go on whatever becomes of who waits for it. */
internal fun <R> detached(context: CoroutineContext, work: suspend () -> R): Deferred<R> =
    CoroutineScope(context.minusKey(Job)).async(start = CoroutineStart.UNDISPATCHED) { work() }

/** Does [work], and blocks the thread meanwhile. A thread that is interrupted goes on at once, and stays interrupted. */
@OptIn(ExperimentalCoroutinesApi::class)
internal fun blocking(work: suspend () -> Unit) {
    val ended = CountDownLatch(1)
    val running = detached(Dispatchers.Unconfined, work)
    running.invokeOnCompletion { ended.countDown() }
    try {
        ended.await()
    } catch (_: InterruptedException) {
        Thread.currentThread().interrupt()
        return
    }
    running.getCompletionExceptionOrNull()?.let { throw it }
}
