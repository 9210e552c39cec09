package systems.zlink.store.kotlin.binding

import java.util.concurrent.ArrayBlockingQueue
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import java.util.concurrent.ThreadFactory
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import kotlin.coroutines.AbstractCoroutineContextElement
import kotlin.coroutines.Continuation
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher

private val DAEMONS = ThreadFactory { Thread(it).apply { isDaemon = true } }

/** An interceptor that is no dispatcher, and leads nowhere. */
private object Nowhere : AbstractCoroutineContextElement(ContinuationInterceptor), ContinuationInterceptor {
    override fun <T> interceptContinuation(continuation: Continuation<T>): Continuation<T> = continuation
}

private object Needless : CoroutineDispatcher() {
    override fun isDispatchNeeded(context: CoroutineContext) = false

    override fun dispatch(context: CoroutineContext, block: Runnable) = throw AssertionError("it said that it is not needed")
}

/** Where the code behind a call runs on the thread that resumes it. */
internal fun runningWhereTheyStand(): Map<String, CoroutineContext> = mapOf(
    "no dispatcher" to EmptyCoroutineContext,
    "unconfined" to Dispatchers.Unconfined,
    "a direct executor" to Executor { it.run() }.asCoroutineDispatcher(),
    "a dispatcher that is not needed" to Needless,
    "an interceptor that is no dispatcher" to Nowhere,
    // A pool without a thread that is free: it has been given what it never ends.
    "callers run what there is no room for" to
        ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, ArrayBlockingQueue(1), DAEMONS, ThreadPoolExecutor.CallerRunsPolicy())
            .apply { repeat(2) { execute { Thread.sleep(Long.MAX_VALUE) } } }
            .asCoroutineDispatcher(),
)

/** Where it runs elsewhere. */
internal fun leadingAway(): Map<String, CoroutineContext> = mapOf(
    "default" to Dispatchers.Default,
    "IO" to Dispatchers.IO,
    "a part of IO" to Dispatchers.IO.limitedParallelism(100),
    "an executor" to Executors.newCachedThreadPool(DAEMONS).asCoroutineDispatcher(),
    "a new thread for each task" to Executor { DAEMONS.newThread(it).start() }.asCoroutineDispatcher(),
) + listOfNotNull(virtualThreads()?.let { "virtual threads" to it.asCoroutineDispatcher() })

/** A virtual thread for each task, where there are any: from JDK 21 on. */
internal fun virtualThreads(): Executor? = runCatching {
    Executors::class.java.getMethod("newVirtualThreadPerTaskExecutor").invoke(null) as Executor
}.getOrNull()
