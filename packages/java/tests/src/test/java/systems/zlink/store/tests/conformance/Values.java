package systems.zlink.store.tests.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * The variables that a step sees, and what forms of values mean (README, Values). A value is a {@link Long}, a {@link String}, a
 * {@code byte[]}, a list, a map of fields, or a form that is worked out where it is used.
 */
final class Values {
    private static final int BLOCK = 4_099;

    private final Map<String, Object> variables;

    Values() {
        this(new HashMap<>());
    }

    private Values(Map<String, Object> variables) {
        this.variables = variables;
    }

    void set(String name, Object value) {
        variables.put(name, value);
    }

    /** The same variables and one more. */
    Values with(String name, Object value) {
        Values more = copy();
        more.set(name, value);
        return more;
    }

    Values copy() {
        return new Values(new HashMap<>(variables));
    }

    /** A scenario that makes no sense. */
    static IllegalStateException fault(String said) {
        return new IllegalStateException(said);
    }

    Object eval(JsonElement form) {
        if (form.isJsonPrimitive()) {
            return form.getAsJsonPrimitive().isNumber() ? (Object) wholeNumber(form.getAsBigDecimal()) : template(form.getAsString());
        }
        if (form instanceof JsonObject object) {
            return evalObject(object);
        }
        throw fault(form + " is no value");
    }

    String text(JsonElement form) {
        if (eval(form) instanceof String text) {
            return text;
        }
        throw fault(form + " is no text");
    }

    long number(JsonElement form) {
        if (eval(form) instanceof Long number) {
            return number;
        }
        throw fault(form + " is no number");
    }

    byte[] bytes(JsonElement form) {
        Object value = eval(form);
        if (value instanceof String text) {
            return text.getBytes(StandardCharsets.UTF_8);
        }
        if (value instanceof byte[] bytes) {
            return bytes;
        }
        throw fault(form + " are no bytes");
    }

    /** An element of a list, with the variables that it sees. */
    record Element(JsonElement form, Values values) {}

    /** Elements with {@code times} become that many, each with its own {@code i}. */
    List<Element> expand(JsonArray list) {
        List<Element> elements = new ArrayList<>();
        for (JsonElement form : list) {
            // `times` belongs to a text that stands alone, too.
            if (form instanceof JsonObject object && object.has("times") && !object.has("repeat")) {
                long from = object.has("from") ? number(object.get("from")) : 0;
                for (long i = from; i < from + number(object.get("times")); i++) {
                    elements.add(new Element(form, with("i", i)));
                }
            } else {
                elements.add(new Element(form, this));
            }
        }
        return elements;
    }

    private static Long wholeNumber(BigDecimal number) {
        return number.longValueExact();
    }

    /** A saved result, or a field of one. */
    Object named(String path) {
        return lookUp(path);
    }

    private Object lookUp(String path) {
        String[] parts = path.split("\\.");
        Object value = variables.get(parts[0]);
        for (int index = 1; index < parts.length && value != null; index++) {
            value = value instanceof Map<?, ?> fields ? fields.get(parts[index])
                    : value instanceof List<?> list && Integer.parseInt(parts[index]) < list.size() ? list.get(Integer.parseInt(parts[index]))
                    : null;
        }
        if (value == null) {
            throw fault(path + " is not there");
        }
        return value instanceof JsonElement form ? eval(form) : value;
    }

    private Object evalObject(JsonObject form) {
        if (form.has("var")) {
            return lookUp(text(form.get("var")));
        }
        if (form.has("repeat")) {
            return text(form.get("repeat")).repeat(Math.toIntExact(number(form.get("times"))));
        }
        if (form.has("join")) {
            StringBuilder joined = new StringBuilder();
            form.getAsJsonArray("join").forEach(part -> joined.append(text(part)));
            return joined.toString();
        }
        if (form.has("utf16")) {
            StringBuilder units = new StringBuilder();
            form.getAsJsonArray("utf16").forEach(unit -> units.append((char) number(unit)));
            return units.toString();
        }
        if (form.has("bend")) {
            StringBuilder text = new StringBuilder(text(form.get("bend")));
            int at = place(text.length(), number(form.get("at")));
            text.setCharAt(at, text.charAt(at) == 'A' ? 'B' : 'A');
            return text.toString();
        }
        if (form.has("cut")) {
            String text = text(form.get("cut"));
            return text.substring(0, Math.min(place(text.length(), number(form.get("to"))), text.length()));
        }
        if (form.has("sum")) {
            long sum = 0;
            for (JsonElement part : form.getAsJsonArray("sum")) {
                sum += number(part);
            }
            return sum;
        }
        if (form.has("minus")) {
            JsonArray parts = form.getAsJsonArray("minus");
            long rest = number(parts.get(0));
            for (int index = 1; index < parts.size(); index++) {
                rest -= number(parts.get(index));
            }
            return rest;
        }
        if (form.has("hex")) {
            return HexFormat.of().parseHex(form.get("hex").getAsString());
        }
        if (form.has("fill")) {
            byte[] bytes = fill(number(form.get("fill")), Math.toIntExact(number(form.get("size"))));
            if (form.has("flip")) {
                int at = Math.toIntExact(number(form.get("flip")));
                bytes[at] = (byte) ~bytes[at];
            }
            return bytes;
        }
        throw fault(form + " is no value");
    }

    /** A place in a text of that length, counted from its end if it is negative. */
    private static int place(int length, long at) {
        return Math.toIntExact(at < 0 ? Math.max(0, length + at) : at);
    }

    private static byte[] fill(long seed, int size) {
        long x = seed;
        byte[] block = new byte[BLOCK];
        for (int index = 0; index < BLOCK; index++) {
            x = (x * 1_103_515_245L + 12_345) % (1L << 31);
            block[index] = (byte) (x >> 16);
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(size);
        while (bytes.size() < size) {
            bytes.write(block, 0, Math.min(BLOCK, size - bytes.size()));
        }
        return bytes.toByteArray();
    }

    /** A text with its <code>${…}</code> filled in. */
    private String template(String text) {
        StringBuilder filled = new StringBuilder();
        int place = 0;
        for (int start = text.indexOf("${"); start >= 0; start = text.indexOf("${", place)) {
            filled.append(text, place, start);
            int end = text.indexOf('}', start);
            String[] parts = text.substring(start + 2, end).split(":");
            Object value = lookUp(parts[0]);
            int width = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
            filled.append(value instanceof Long number && width > 0 ? String.format("%0" + width + "d", number) : String.valueOf(value));
            place = end + 1;
        }
        return filled.append(text, place, text.length()).toString();
    }
}
