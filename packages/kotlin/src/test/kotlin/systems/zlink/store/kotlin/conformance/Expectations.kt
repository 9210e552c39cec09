package systems.zlink.store.kotlin.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import java.util.HexFormat

typealias Fields = Map<String, Any>

/** It is not as expected. */
class Mismatch(said: String) : AssertionError(said)

/** Whether a result is as expected (README, Expectations). */
object Expectations {
    private val CONDITIONS = setOf("not", "atLeast", "atMost", "above", "below", "oneOf", "size", "present")
    private val ITEM = setOf("key", "bytes", "version", "expiresAt")
    private val REPETITION = setOf("times", "from")

    fun expect(result: Fields, expectation: JsonElement, values: Values) {
        if (expectation.isJsonPrimitive) {
            if (expectation.asString != result["kind"]) {
                throw Mismatch("expected ${expectation.asString}, got ${show(result)}")
            }
            return
        }
        val fields = expectation.asJsonObject
        if (fields.has("oneOf")) {
            return oneOf(fields.getAsJsonArray("oneOf")) { expect(result, it, values) }
        }
        val inside = values.with("it", result)
        for ((name, matcher) in fields.entrySet()) {
            try {
                when (name) {
                    "argument" -> contains(result["argument"] ?: result["message"], inside.text(matcher))
                    "says" -> contains(result["message"], inside.text(matcher))
                    // A cancellation carries none.
                    "outcome" -> if ("outcome" in result) field(result["outcome"], matcher, inside)
                    else -> field(result[name], matcher, inside)
                }
            } catch (mismatch: Mismatch) {
                throw Mismatch("$name: ${mismatch.message}; got ${show(result)}")
            }
        }
    }

    /** Checks one field; `null` if it is not there. */
    fun field(actual: Any?, matcher: JsonElement, values: Values) {
        when {
            matcher.isJsonNull -> if (actual != null) throw Mismatch("expected it to be absent")
            actual == null -> throw Mismatch("it is absent")
            matcher is JsonArray -> list(actual, matcher, values)
            matcher is JsonObject && !matcher.has("fill") && matcher.keySet().any(CONDITIONS::contains) ->
                conditions(actual, matcher, values)
            else -> {
                val expected = values.eval(matcher).let { if (actual is ByteArray && it is String) it.toByteArray() else it }
                if (comparable(actual) != comparable(expected)) {
                    throw Mismatch("expected ${show(expected)}, got ${show(actual)}")
                }
            }
        }
    }

    /** The value with byte arrays as something that can be compared. */
    private fun comparable(value: Any?): Any? = when (value) {
        is ByteArray -> java.nio.ByteBuffer.wrap(value)
        is List<*> -> value.map(::comparable)
        is Map<*, *> -> value.mapValues { comparable(it.value) }
        else -> value
    }

    private fun contains(actual: Any?, part: String) {
        if (actual !is String || part !in actual) {
            throw Mismatch("expected it to name $part")
        }
    }

    private fun list(actual: Any, elements: JsonArray, values: Values) {
        val list = actual as? List<*> ?: throw Mismatch("expected a list")
        val expected = values.expand(elements)
        if (expected.size != list.size) {
            throw Mismatch("expected ${expected.size} elements, got ${list.size}")
        }
        expected.forEachIndexed { index, element ->
            val form = element.form
            try {
                if (form is JsonObject && form.keySet().any(ITEM::contains)) {
                    val item = list[index] as Map<*, *>
                    for ((name, matcher) in form.entrySet().filter { it.key !in REPETITION }) {
                        field(item[name], matcher, element.values)
                    }
                } else {
                    field(list[index], form, element.values)
                }
            } catch (mismatch: Mismatch) {
                throw Mismatch("element $index: ${mismatch.message}")
            }
        }
    }

    private fun conditions(actual: Any, form: JsonObject, values: Values) {
        for ((name, argument) in form.entrySet()) {
            val holds = when (name) {
                "present" -> true
                "oneOf" -> true.also { oneOf(argument.asJsonArray) { field(actual, it, values) } }
                "not" -> !matches(actual, argument, values)
                "size" -> true.also { field(size(actual), argument, values) }
                "atLeast" -> actual as Long >= values.number(argument)
                "atMost" -> actual as Long <= values.number(argument)
                "above" -> actual as Long > values.number(argument)
                "below" -> (actual as Long) < values.number(argument)
                else -> fault("$name is no matcher")
            }
            if (!holds) {
                throw Mismatch("${show(actual)} is not $name $argument")
            }
        }
    }

    private fun matches(actual: Any, matcher: JsonElement, values: Values): Boolean = try {
        field(actual, matcher, values)
        true
    } catch (_: Mismatch) {
        false
    }

    private fun oneOf(alternatives: JsonArray, holds: (JsonElement) -> Unit) {
        val said = alternatives.map { alternative ->
            try {
                return holds(alternative)
            } catch (mismatch: Mismatch) {
                mismatch.message
            }
        }
        throw Mismatch("none of: ${said.joinToString(" | ")}")
    }

    private fun size(value: Any): Long = when (value) {
        is List<*> -> value.size.toLong()
        is String -> value.toByteArray().size.toLong()
        is ByteArray -> value.size.toLong()
        else -> throw Mismatch("it has no size")
    }

    /** A value for a person, shortened. */
    fun show(value: Any?): String = when (value) {
        is String -> if (value.length <= 80) "\"$value\"" else "a text of ${value.length}"
        is ByteArray -> if (value.size <= 32) HexFormat.of().formatHex(value) else "${value.size} bytes"
        is List<*> -> value.take(5).joinToString(prefix = "[", postfix = "] ${value.size} in all") { show(it) }
        is Map<*, *> -> value.entries.joinToString(prefix = "{ ", postfix = " }") { "${it.key}: ${show(it.value)}" }
        else -> value.toString()
    }
}
