package systems.zlink.store.kotlin

import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlin.time.Instant

// Limits are the native library's to check; what has no form there is refused here.

/** Beyond any limit, also for a JSON text with much white space. */
private const val LONGEST_TEXT = 20_000_000

/** Beyond any limit, and less than a buffer of the native library takes. */
private const val MOST_BYTES = 1_000_000_000L

/** What stands around a text or bytes in a buffer, and more. */
private const val AROUND = 64L

/** The texts and bytes of one call: as much as certainly can be handed over. */
internal class Handed {
    private var size = 0L

    /** A text that has a form in UTF-8. */
    fun text(argument: String, value: String): String {
        if (value.length > LONGEST_TEXT) {
            throw InvalidArgumentException("$argument must be far shorter than ${value.length} characters", argument)
        }
        var at = 0
        while (at < value.length) {
            val char = value[at]
            at += when {
                !char.isSurrogate() -> 1
                char.isHighSurrogate() && at + 1 < value.length && value[at + 1].isLowSurrogate() -> 2
                else -> throw InvalidArgumentException("$argument must be valid Unicode (no lone surrogate)", argument)
            }
        }
        // What the generated code makes room for.
        add(argument, 3L * value.length)
        return value
    }

    fun bytes(argument: String, value: ByteArray): ByteArray {
        add(argument, value.size.toLong())
        return value
    }

    private fun add(argument: String, more: Long) {
        size += more + AROUND
        if (size > MOST_BYTES) {
            throw InvalidArgumentException("$argument must be far shorter: what is handed over with it is $size bytes", argument)
        }
    }
}

/** A text that has a form in UTF-8. */
internal fun text(argument: String, value: String): String = Handed().text(argument, value)

/** Bytes that can be handed over. */
internal fun bytes(argument: String, value: ByteArray): ByteArray = Handed().bytes(argument, value)

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
