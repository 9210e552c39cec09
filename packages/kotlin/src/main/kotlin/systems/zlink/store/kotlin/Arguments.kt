package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.Instant

// Limits are the native library's to check; what has no form there is refused here.

/** Beyond any limit, and as much as certainly fits into one call. */
private const val LONGEST_TEXT = 100_000_000
private const val MOST_BYTES = 1_000_000_000L

/** A text that has a form in UTF-8. */
internal fun text(argument: String, value: String): String {
    var at = 0
    while (at < value.length) {
        val char = value[at]
        at += when {
            !char.isSurrogate() -> 1
            char.isHighSurrogate() && at + 1 < value.length && value[at + 1].isLowSurrogate() -> 2
            else -> throw InvalidArgumentException("$argument must be valid Unicode (no lone surrogate)", argument)
        }
    }
    if (value.length > LONGEST_TEXT) {
        throw InvalidArgumentException("$argument must be far shorter than ${value.length} characters", argument)
    }
    return value
}

/** Bytes that can be handed over, with [before] others of the same call. */
internal fun bytes(argument: String, value: ByteArray, before: Long = 0): ByteArray {
    if (before + value.size > MOST_BYTES) {
        throw InvalidArgumentException("$argument must be far shorter than ${before + value.size} bytes", argument)
    }
    return value
}

/** Whole milliseconds, upwards. */
internal fun Duration.upToMilliseconds(): Long {
    val whole = inWholeMilliseconds
    return if (whole.milliseconds < this) whole + 1 else whole
}

/** Whole seconds, upwards. */
internal fun Duration.upToSeconds(): Long {
    val whole = inWholeSeconds
    return if (whole.seconds < this) whole + 1 else whole
}

internal fun instant(unixMs: Long): Instant = Instant.fromEpochMilliseconds(unixMs)
