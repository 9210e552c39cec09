package systems.zlink.store.kotlin.conformance

import com.google.gson.JsonArray
import com.google.gson.JsonElement
import com.google.gson.JsonObject
import java.util.HexFormat

/** A scenario that makes no sense. */
fun fault(said: String): Nothing = throw IllegalStateException(said)

/**
 * The variables that a step sees, and what forms of values mean (README, Values). A value is a [Long], a [String], a [ByteArray], a
 * list, a map of fields, or a form that is worked out where it is used.
 */
class Values private constructor(private val variables: MutableMap<String, Any>) {
    constructor() : this(mutableMapOf())

    operator fun set(name: String, value: Any) {
        variables[name] = value
    }

    /** The same variables and one more. */
    fun with(name: String, value: Any): Values = copy().also { it[name] = value }

    fun copy(): Values = Values(variables.toMutableMap())

    fun eval(form: JsonElement): Any = when {
        form is JsonObject -> evalObject(form)
        !form.isJsonPrimitive -> fault("$form is no value")
        form.asJsonPrimitive.isNumber -> form.asBigDecimal.longValueExact()
        else -> template(form.asString)
    }

    fun text(form: JsonElement): String = eval(form) as? String ?: fault("$form is no text")

    fun number(form: JsonElement): Long = eval(form) as? Long ?: fault("$form is no number")

    fun bytes(form: JsonElement): ByteArray = when (val value = eval(form)) {
        is String -> value.toByteArray()
        is ByteArray -> value
        else -> fault("$form are no bytes")
    }

    /** An element of a list, with the variables that it sees. */
    class Element(val form: JsonElement, val values: Values)

    /** Elements with `times` become that many, each with its own `i`. */
    fun expand(list: JsonArray): List<Element> = list.flatMap { form ->
        // `times` belongs to a text that stands alone, too.
        if (form is JsonObject && form.has("times") && !form.has("repeat")) {
            val from = form["from"]?.let(::number) ?: 0
            (from until from + number(form["times"])).map { Element(form, with("i", it)) }
        } else {
            listOf(Element(form, this))
        }
    }

    /** A saved result, or a field of one. */
    fun named(path: String): Any {
        val parts = path.split('.')
        val value = parts.drop(1).fold(variables[parts[0]]) { inside, part ->
            when (inside) {
                is Map<*, *> -> inside[part]
                is List<*> -> inside.getOrNull(part.toInt())
                else -> null
            }
        }
        return when (value) {
            null -> fault("$path is not there")
            is JsonElement -> eval(value)
            else -> value
        }
    }

    private fun evalObject(form: JsonObject): Any = when {
        form.has("var") -> named(text(form["var"]))
        form.has("repeat") -> text(form["repeat"]).repeat(number(form["times"]).toInt())
        form.has("join") -> form.getAsJsonArray("join").joinToString("") { text(it) }
        form.has("utf16") -> form.getAsJsonArray("utf16").map { number(it).toInt().toChar() }.joinToString("")
        form.has("bend") -> StringBuilder(text(form["bend"])).apply {
            val at = place(length, number(form["at"]))
            this[at] = if (this[at] == 'A') 'B' else 'A'
        }.toString()
        form.has("cut") -> text(form["cut"]).let { it.take(place(it.length, number(form["to"]))) }
        form.has("sum") -> form.getAsJsonArray("sum").sumOf { number(it) }
        form.has("minus") -> form.getAsJsonArray("minus").map { number(it) }.reduce(Long::minus)
        form.has("hex") -> HexFormat.of().parseHex(form["hex"].asString)
        form.has("fill") -> fill(number(form["fill"]), number(form["size"]).toInt()).also { bytes ->
            form["flip"]?.let { number(it).toInt() }?.let { bytes[it] = bytes[it].toInt().inv().toByte() }
        }
        else -> fault("$form is no value")
    }

    /** A place in a text of that length, counted from its end if it is negative. */
    private fun place(length: Int, at: Long): Int = (if (at < 0) maxOf(0L, length + at) else at).toInt()

    private fun fill(seed: Long, size: Int): ByteArray {
        var x = seed
        val block = ByteArray(BLOCK) {
            x = (x * 1_103_515_245L + 12_345) % (1L shl 31)
            (x shr 16).toByte()
        }
        val bytes = ByteArray(size)
        for (at in 0 until size step BLOCK) {
            block.copyInto(bytes, at, 0, minOf(BLOCK, size - at))
        }
        return bytes
    }

    /** A text with its `${…}` filled in. */
    private fun template(text: String): String = HOLE.replace(text) { hole ->
        val (name, width) = hole.destructured
        named(name).toString().padStart(width.toIntOrNull() ?: 0, '0')
    }

    private companion object {
        const val BLOCK = 4_099
        val HOLE = Regex("""\$\{([^:}]*):?(\d*)}""")
    }
}
