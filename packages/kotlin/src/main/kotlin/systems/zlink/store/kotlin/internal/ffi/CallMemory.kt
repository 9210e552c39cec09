package systems.zlink.store.kotlin.internal.ffi

import com.sun.jna.Memory
import com.sun.jna.Pointer

/**
 * The native memory that one thread needs to make calls.
 *
 * The generated code would allocate native memory for the status of every call and for every buffer that crosses, about 13 times for
 * one operation, and JNA frees it only when the garbage collector finds its owner: a process that makes many calls and little garbage
 * would grow by hundreds of megabytes. `scripts/generate` puts this in its place.
 */
internal class CallMemory private constructor() {
    private val all = Memory(STATUS_SIZE + BUFFERS * BUFFER_SIZE).apply { clear() }
    private val buffers = Array(BUFFERS) { all.share(STATUS_SIZE + it * BUFFER_SIZE, BUFFER_SIZE) as Memory }
    private var used = 0

    /** Where a call says how it ended: Rust's `RustCallStatus`. Success until a call says otherwise. */
    val status: Pointer get() = all

    /**
     * Room for a `RustBuffer` on its way in or out: what lies there is copied to and from the object's fields at the call, so that it
     * is needed no longer than that, and no call has nearly as many arguments as there are places.
     */
    fun buffer(size: Int): Memory {
        check(size.toLong() == BUFFER_SIZE) { "a RustBuffer of $size bytes" }
        used = (used + 1) % BUFFERS
        return buffers[used]
    }

    companion object {
        private const val STATUS_SIZE = 32L
        private const val BUFFER_SIZE = 24L
        private const val BUFFERS = 32

        private val OF_THREAD: ThreadLocal<CallMemory> = ThreadLocal.withInitial { CallMemory() }

        fun ofThread(): CallMemory = OF_THREAD.get()
    }
}

/** Makes a call; throws what it says of its failure. Calls made to work out the arguments of another are over before that begins. */
internal inline fun <U, E : Exception> uniffiRustCallWithError(
    errors: UniffiRustCallStatusErrorHandler<E>,
    call: (Pointer) -> U,
): U {
    val status = CallMemory.ofThread().status
    val result = call(status)
    if (status.getByte(0) != UNIFFI_CALL_SUCCESS) {
        throw failure(errors, status)
    }
    return result
}

/** What a call has left in its status, which is as new then. */
internal fun <E : Exception> failure(errors: UniffiRustCallStatusErrorHandler<E>, status: Pointer): Exception {
    val code = status.getByte(0)
    status.setByte(0, UNIFFI_CALL_SUCCESS)
    val said = RustBuffer.create(status.getLong(8).toULong(), status.getLong(16).toULong(), status.getPointer(24))
    return when {
        code == UNIFFI_CALL_ERROR -> errors.lift(said)
        said.len > 0 -> InternalException(FfiConverterString.lift(said))
        else -> InternalException("the native library failed, and could not say why")
    }
}
