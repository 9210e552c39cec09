package systems.zlink.store.kotlin.internal.ffi

import com.sun.jna.Memory
import com.sun.jna.Pointer
import java.util.concurrent.atomic.AtomicReferenceArray

/**
 * The native memory that one thread needs while it makes a call.
 *
 * The generated code would allocate native memory for the status of every call and for every buffer that crosses, about 13 times for
 * one operation, and JNA frees it only when the garbage collector finds its owner: a process that makes many calls and little garbage
 * would grow by hundreds of megabytes. `scripts/generate` puts this in its place. It is lent from a small pool, for one call and those
 * made within it, and not kept by threads: virtual ones, and those of executors that make a new one for each task, come and go.
 */
internal class CallMemory private constructor() {
    private val all = Memory(DEPTHS * STATUS_SIZE + BUFFERS * BUFFER_SIZE)
    private val statuses = Array(DEPTHS) { all.share(it * STATUS_SIZE, STATUS_SIZE) }
    private val buffers = Array(BUFFERS) { all.share(DEPTHS * STATUS_SIZE + it * BUFFER_SIZE, BUFFER_SIZE) as Memory }
    private var used = 0

    /** Somebody else may have had JNA free all that it had allocated. */
    private val isValid get() = all.valid()

    /** Where a call [depth] calls deep says how it ended: Rust's `RustCallStatus`. Success until the call says otherwise. */
    private fun status(depth: Int): Pointer = statuses[depth].apply { setMemory(0, STATUS_SIZE, 0) }

    private fun nextBuffer(): Memory {
        used = (used + 1) % BUFFERS
        return buffers[used]
    }

    private fun holds(place: Pointer): Boolean =
        Pointer.nativeValue(place) - Pointer.nativeValue(all) in 0 until all.size()

    /** What a thread has been lent, if anything. */
    internal class Loan private constructor() {
        private var memory: CallMemory? = null
        private var depth = 0

        /** Begins a call, perhaps within another, and gives the place of its status. It is followed by [end]. */
        fun begin(): Pointer {
            check(depth < DEPTHS) { "calls within calls, $depth deep" }
            val lent = memory ?: take().also { memory = it }
            return lent.status(depth++)
        }

        fun end() {
            if (--depth == 0) {
                memory?.let(::give)
                memory = null
            }
        }

        /**
         * Room for a `RustBuffer` on its way in or out: what lies there is copied to and from the object's fields within the call, so
         * that it is needed no longer than that, and no call has nearly as many arguments as there are places.
         */
        fun buffer(size: Int): Memory {
            check(size.toLong() == BUFFER_SIZE) { "a RustBuffer of $size bytes" }
            // JNA makes a few to look at them, outside of calls.
            return memory?.nextBuffer() ?: Memory(BUFFER_SIZE)
        }

        /** Whether a buffer has its room in what is lent now. */
        fun holds(buffer: RustBuffer): Boolean = memory?.holds(buffer.pointer) ?: false

        companion object {
            private val OF_THREAD: ThreadLocal<Loan> = ThreadLocal.withInitial { Loan() }

            fun ofThread(): Loan = OF_THREAD.get()
        }
    }

    companion object {
        private const val STATUS_SIZE = 32L
        private const val BUFFER_SIZE = 24L
        private const val BUFFERS = 32

        /** An argument is worked out by calls within the call; there is nothing deeper than that. */
        private const val DEPTHS = 8

        /** As many as there may be calls at the same moment, or nearly; more are allocated and freed again. */
        private const val KEPT = 64
        private val IDLE = AtomicReferenceArray<CallMemory>(KEPT)

        /** Where a thread looks first: most find there what they have left. */
        private fun places(): IntProgression {
            val first = Thread.currentThread().hashCode() and (KEPT - 1)
            return first until first + KEPT
        }

        private fun take(): CallMemory {
            for (place in places()) {
                val at = place and (KEPT - 1)
                if (IDLE.getPlain(at) != null) {
                    IDLE.getAndSet(at, null)?.let { if (it.isValid) return it }
                }
            }
            return CallMemory()
        }

        private fun give(memory: CallMemory) {
            for (place in places()) {
                if (IDLE.compareAndSet(place and (KEPT - 1), null, memory)) return
            }
            memory.all.close()
        }
    }
}

/** Makes a call; throws what it says of its failure. Calls made to work out its arguments are made within it. */
internal inline fun <U, E : Exception> uniffiRustCallWithError(
    errors: UniffiRustCallStatusErrorHandler<E>,
    call: (Pointer) -> U,
): U {
    val loan = CallMemory.Loan.ofThread()
    val status = loan.begin()
    try {
        val result = call(status)
        if (status.getByte(0) != UNIFFI_CALL_SUCCESS) {
            throw failure(errors, status)
        }
        return result
    } finally {
        loan.end()
    }
}

/** What a call has left in its status. */
internal fun <E : Exception> failure(errors: UniffiRustCallStatusErrorHandler<E>, status: Pointer): Exception {
    val said = RustBuffer.create(status.getLong(8).toULong(), status.getLong(16).toULong(), status.getPointer(24))
    return when {
        status.getByte(0) == UNIFFI_CALL_ERROR -> errors.lift(said)
        said.len > 0 -> InternalException(FfiConverterString.lift(said))
        else -> InternalException("the native library failed, and could not say why")
    }
}

/** The same buffer with room in the memory of the call that it is now an argument of; where it was before may be somebody else's. */
internal fun RustBuffer.ByValue.inCall(): RustBuffer.ByValue =
    if (CallMemory.Loan.ofThread().holds(this)) this else RustBuffer.create(capacity.toULong(), len.toULong(), data)
