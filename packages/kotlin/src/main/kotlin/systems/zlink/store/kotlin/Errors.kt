package systems.zlink.store.kotlin

import systems.zlink.store.kotlin.internal.ffi.InternalException as NativePanic
import systems.zlink.store.kotlin.internal.ffi.Outcome as NativeOutcome
import systems.zlink.store.kotlin.internal.ffi.StoreException as NativeException

/** What became of an operation that failed. */
public enum class Outcome {
    /** It surely changed nothing, and never will. */
    NOT_APPLIED,

    /** It may have been applied, or may still be: read the key (or the reference) and compare. */
    UNKNOWN,
}

/**
 * What every error of a store says: an [InvalidArgumentException] or a [StoreException].
 *
 * No message holds a password, the bytes of a value or a key of the engine. A cancelled coroutine gets
 * [kotlin.coroutines.cancellation.CancellationException] as from any other suspending call.
 */
public sealed interface StoreFailure {
    /** The stable, machine-readable code, such as `TIMEOUT`; the same in every language. */
    public val code: String

    /** What became of the operation. */
    public val outcome: Outcome

    /**
     * Whether the same call may succeed later without anybody mending anything. A write whose [outcome] is [Outcome.UNKNOWN] is
     * to be looked at before it is made again.
     */
    public val retryable: Boolean
}

/**
 * An argument is outside its limits, which stand beside each function. It is thrown before anything else happens, also in a
 * coroutine that is cancelled already; the engine was not touched.
 *
 * @property argument the argument as the contract names it, such as `mutations[3].key`, `retention` or `leaseMs`
 */
public class InvalidArgumentException internal constructor(
    message: String,
    public val argument: String,
) : IllegalArgumentException(message), StoreFailure {
    override val code: String get() = "INVALID_ARGUMENT"
    override val outcome: Outcome get() = Outcome.NOT_APPLIED
    override val retryable: Boolean get() = false
}

/** Why a call gave no result: a class for each [code]. */
public sealed class StoreException(
    message: String,
    override val code: String,
    override val outcome: Outcome,
    override val retryable: Boolean,
) : RuntimeException(message), StoreFailure {
    /** `TIMEOUT`: the operation timeout passed. */
    public class Timeout internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "TIMEOUT", outcome, retryable)

    /** `UNAVAILABLE`: no connection, connection lost, cluster down, failover under way, too few replicas acknowledged. */
    public class Unavailable internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "UNAVAILABLE", outcome, retryable)

    /** `UNAUTHENTICATED`: wrong credentials, or a command that the user may not run. */
    public class Unauthenticated internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "UNAUTHENTICATED", outcome, retryable)

    /** `OUT_OF_MEMORY`: the engine refused the write for want of memory or disk. */
    public class OutOfMemory internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "OUT_OF_MEMORY", outcome, retryable)

    /** `INCOMPATIBLE`: data of a newer layout, foreign data under our key, or an engine that is too old. */
    public class Incompatible internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "INCOMPATIBLE", outcome, retryable)

    /** `CLOSED`: the store was closed. */
    public class Closed internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "CLOSED", outcome, retryable)

    /** `INTERNAL`: a broken invariant of ours. */
    public class Internal internal constructor(message: String, outcome: Outcome, retryable: Boolean) :
        StoreException(message, "INTERNAL", outcome, retryable)

    /** `SCAN_EXPIRED`: the snapshot of [LocationStore.items] was gone before its end; drop what was read and start again. */
    public class ScanExpired internal constructor() :
        StoreException(
            "the snapshot of this scan is gone; drop what was read and start again", "SCAN_EXPIRED", Outcome.NOT_APPLIED, true,
        )

    /** `STATE_CONFLICT`: the entry does not have the expected version; nothing changed. */
    public class StateConflict internal constructor() :
        StoreException("the entry does not have the expected version", "STATE_CONFLICT", Outcome.NOT_APPLIED, false)

    /** `RATE_LIMIT`: the project has 100,000 live entries and this would be one more; nothing changed. */
    public class RateLimit internal constructor() :
        StoreException(
            "the project has 100,000 live entries already; delete some first", "RATE_LIMIT", Outcome.NOT_APPLIED, false,
        )

    /** `LOCK_LOST`: the lease was lost or had expired. */
    public class LockLost internal constructor(message: String) :
        StoreException(message, "LOCK_LOST", Outcome.NOT_APPLIED, false)

    /** `LOCK_UNAVAILABLE`: the lock could not be had in time. */
    public class LockUnavailable internal constructor() :
        StoreException("the lock could not be had in time", "LOCK_UNAVAILABLE", Outcome.NOT_APPLIED, true)
}

/** Makes a call into the native library; its errors come out as ours. */
internal inline fun <T> translated(call: () -> T): T =
    try {
        call()
    } catch (error: NativeException) {
        throw error.translated()
    } catch (panic: NativePanic) {
        throw StoreException.Internal(panic.message ?: "the native library failed", Outcome.UNKNOWN, false)
    }

internal fun NativeException.translated(): RuntimeException {
    val (text, retryable) = text() to retryable()
    val outcome = if (resultOutcome() == NativeOutcome.UNKNOWN) Outcome.UNKNOWN else Outcome.NOT_APPLIED
    return when (this) {
        is NativeException.InvalidArgument -> InvalidArgumentException(text, argument)
        is NativeException.Timeout -> StoreException.Timeout(text, outcome, retryable)
        is NativeException.Unavailable -> StoreException.Unavailable(text, outcome, retryable)
        is NativeException.Unauthenticated -> StoreException.Unauthenticated(text, outcome, retryable)
        is NativeException.OutOfMemory -> StoreException.OutOfMemory(text, outcome, retryable)
        is NativeException.Incompatible -> StoreException.Incompatible(text, outcome, retryable)
        is NativeException.Closed -> StoreException.Closed(text, outcome, retryable)
        // Only a coroutine that is cancelled cancels its operation, and it does not ask for the result.
        is NativeException.Cancelled, is NativeException.Internal -> StoreException.Internal(text, outcome, retryable)
    }
}
