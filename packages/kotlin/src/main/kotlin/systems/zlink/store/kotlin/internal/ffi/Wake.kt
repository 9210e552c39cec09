package systems.zlink.store.kotlin.internal.ffi

import com.sun.jna.CallbackThreadInitializer
import com.sun.jna.Native
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.resume
import kotlinx.coroutines.CancellableContinuation
import kotlinx.coroutines.Dispatchers

/** How the native library's threads come to the virtual machine. */
internal object NativeThreads {
    private const val NAME = "zlink-store"

    /** Whether this is one of them. */
    val isOne: Boolean get() = Thread.currentThread().name == NAME

    init {
        // Attached once, not for each call, and as daemons: they keep no process alive.
        Native.setCallbackThreadInitializer(
            uniffiRustFutureContinuationCallbackImpl, CallbackThreadInitializer(true, false, NAME),
        )
    }

    /** Makes sure of it. */
    fun prepare() {}
}

/**
 * As many threads as are needed, however many of them are blocked: those of [Dispatchers.IO], but none of the 64 that it gives to its
 * own tasks. They are daemons, and end when they have been idle for a while.
 */
private val WAKERS = Dispatchers.IO.limitedParallelism(Int.MAX_VALUE)

/**
 * Resumes a coroutine whose wait has ended. The native library tells it on one of the threads that drive all operations, and resuming
 * may run code of the caller's right there: a dispatcher is free to run a task where it stands, and to block when it is given one. So
 * that is left to another thread, except for the dispatchers that are known to do neither.
 */
internal fun wake(waiting: CancellableContinuation<Byte>, pollResult: Byte) {
    val dispatcher = waiting.context[ContinuationInterceptor]
    if (dispatcher === Dispatchers.Default || dispatcher === Dispatchers.IO || !NativeThreads.isOne) {
        waiting.resume(pollResult)
    } else {
        WAKERS.dispatch(EmptyCoroutineContext) { waiting.resume(pollResult) }
    }
}
