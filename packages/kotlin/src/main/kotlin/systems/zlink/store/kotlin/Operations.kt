package systems.zlink.store.kotlin

import com.sun.jna.CallbackThreadInitializer
import com.sun.jna.Native
import kotlin.coroutines.ContinuationInterceptor
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext
import systems.zlink.store.kotlin.internal.ffi.uniffiRustFutureContinuationCallbackImpl

/**
 * Makes one suspending call of an operation's steps. The argument errors come first, then the cancellation, then I/O. However it
 * ends, the operation is freed, which cancels what is still under way and gives back a lease that nobody took.
 */
internal suspend inline fun <O : AutoCloseable, R> run(
    make: () -> O,
    start: (O) -> Boolean,
    crossinline wait: suspend (O) -> Unit,
    result: (O) -> R,
): R = translated {
    make().use { operation ->
        currentCoroutineContext().ensureActive()
        if (!start(operation)) {
            offNativeThreads { wait(operation) }
        }
        result(operation)
    }
}

/**
 * Waits, and goes on on a thread of the caller's dispatcher. The end of a wait is told on a thread of the native library: where the
 * caller's context does not lead away from it, what comes behind the call would run there and delay the operations of others.
 */
internal suspend inline fun offNativeThreads(crossinline wait: suspend () -> Unit) {
    val context = currentCoroutineContext()
    val dispatcher = context[ContinuationInterceptor] as? CoroutineDispatcher
    if (dispatcher != null && dispatcher.isDispatchNeeded(context)) {
        wait()
    } else {
        withContext(Dispatchers.Default) { wait() }
    }
}

/** How the native library's threads come to the virtual machine. */
internal object NativeThreads {
    init {
        // Attached once, not for each call, and as daemons: they keep no process alive.
        Native.setCallbackThreadInitializer(
            uniffiRustFutureContinuationCallbackImpl, CallbackThreadInitializer(true, false, "zlink-store"),
        )
    }

    /** Makes sure of it. */
    fun prepare() {}
}
