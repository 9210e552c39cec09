package systems.zlink.store.tests.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;

/** Whether a result is as expected (README, Expectations). */
final class Expectations {
    private static final Set<String> CONDITIONS = Set.of("not", "atLeast", "atMost", "above", "below", "oneOf", "size", "present");
    private static final Set<String> FIELDS = Set.of("key", "bytes", "version", "expiresAt");
    private static final Set<String> REPETITION = Set.of("times", "from");

    private Expectations() {}

    /** It is not as expected. */
    static final class Mismatch extends AssertionError {
        private static final long serialVersionUID = 1L;

        Mismatch(String said) {
            super(said);
        }
    }

    static void expect(Map<String, Object> result, JsonElement expectation, Values values) {
        if (expectation.isJsonPrimitive()) {
            if (!expectation.getAsString().equals(result.get("kind"))) {
                throw new Mismatch("expected " + expectation.getAsString() + ", got " + show(result));
            }
            return;
        }
        JsonObject fields = expectation.getAsJsonObject();
        if (fields.has("oneOf")) {
            oneOf(fields.getAsJsonArray("oneOf"), one -> expect(result, one, values));
            return;
        }
        Values inside = values.with("it", result);
        for (Map.Entry<String, JsonElement> entry : fields.entrySet()) {
            String name = entry.getKey();
            try {
                switch (name) {
                    case "argument" -> contains(result.getOrDefault("argument", result.get("message")), inside.text(entry.getValue()));
                    case "says" -> contains(result.get("message"), inside.text(entry.getValue()));
                    case "outcome" -> {
                        // The platform's own exceptions carry none.
                        if (result.containsKey("outcome")) {
                            field(result.get("outcome"), entry.getValue(), inside);
                        }
                    }
                    default -> field(result.get(name), entry.getValue(), inside);
                }
            } catch (Mismatch mismatch) {
                throw new Mismatch(name + ": " + mismatch.getMessage() + "; got " + show(result));
            }
        }
    }

    /** Checks one field; {@code null} if it is not there. */
    static void field(Object actual, JsonElement matcher, Values values) {
        if (matcher.isJsonNull()) {
            if (actual != null) {
                throw new Mismatch("expected it to be absent");
            }
        } else if (actual == null) {
            throw new Mismatch("it is absent");
        } else if (matcher instanceof JsonArray elements) {
            list(actual, elements, values);
        } else if (matcher instanceof JsonObject form && !form.has("fill") && form.keySet().stream().anyMatch(CONDITIONS::contains)) {
            conditions(actual, form, values);
        } else {
            Object expected = values.eval(matcher);
            if (actual instanceof byte[] && expected instanceof String text) {
                expected = text.getBytes(StandardCharsets.UTF_8);
            }
            if (!Objects.equals(comparable(actual), comparable(expected))) {
                throw new Mismatch("expected " + show(expected) + ", got " + show(actual));
            }
        }
    }

    /** The value with byte arrays as something that can be compared. */
    private static Object comparable(Object value) {
        if (value instanceof byte[] bytes) {
            return ByteBuffer.wrap(bytes);
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Expectations::comparable).toList();
        }
        if (value instanceof Map<?, ?> fields) {
            Map<Object, Object> compared = new HashMap<>();
            fields.forEach((name, field) -> compared.put(name, comparable(field)));
            return compared;
        }
        return value;
    }

    private static void contains(Object actual, String part) {
        if (!(actual instanceof String text && text.contains(part))) {
            throw new Mismatch("expected it to name " + part);
        }
    }

    private static void list(Object actual, JsonArray elements, Values values) {
        if (!(actual instanceof List<?> list)) {
            throw new Mismatch("expected a list");
        }
        List<Values.Element> expected = values.expand(elements);
        if (expected.size() != list.size()) {
            throw new Mismatch("expected " + expected.size() + " elements, got " + list.size());
        }
        for (int index = 0; index < list.size(); index++) {
            Values.Element element = expected.get(index);
            try {
                if (element.form() instanceof JsonObject fields && fields.keySet().stream().anyMatch(FIELDS::contains)) {
                    Map<?, ?> item = (Map<?, ?>) list.get(index);
                    for (Map.Entry<String, JsonElement> entry : fields.entrySet()) {
                        if (!REPETITION.contains(entry.getKey())) {
                            field(item.get(entry.getKey()), entry.getValue(), element.values());
                        }
                    }
                } else {
                    field(list.get(index), element.form(), element.values());
                }
            } catch (Mismatch mismatch) {
                throw new Mismatch("element " + index + ": " + mismatch.getMessage());
            }
        }
    }

    private static void conditions(Object actual, JsonObject form, Values values) {
        for (Map.Entry<String, JsonElement> entry : form.entrySet()) {
            JsonElement argument = entry.getValue();
            boolean holds = switch (entry.getKey()) {
                case "present" -> true;
                case "oneOf" -> {
                    oneOf(argument.getAsJsonArray(), one -> field(actual, one, values));
                    yield true;
                }
                case "not" -> !matches(actual, argument, values);
                case "size" -> {
                    field(size(actual), argument, values);
                    yield true;
                }
                case "atLeast" -> (Long) actual >= values.number(argument);
                case "atMost" -> (Long) actual <= values.number(argument);
                case "above" -> (Long) actual > values.number(argument);
                case "below" -> (Long) actual < values.number(argument);
                default -> throw Values.fault(entry.getKey() + " is no matcher");
            };
            if (!holds) {
                throw new Mismatch(show(actual) + " is not " + entry.getKey() + " " + argument);
            }
        }
    }

    private static boolean matches(Object actual, JsonElement matcher, Values values) {
        try {
            field(actual, matcher, values);
            return true;
        } catch (Mismatch mismatch) {
            return false;
        }
    }

    private static void oneOf(JsonArray alternatives, Consumer<JsonElement> holds) {
        List<String> said = new ArrayList<>();
        for (JsonElement alternative : alternatives) {
            try {
                holds.accept(alternative);
                return;
            } catch (Mismatch mismatch) {
                said.add(mismatch.getMessage());
            }
        }
        throw new Mismatch("none of: " + String.join(" | ", said));
    }

    private static Long size(Object value) {
        if (value instanceof List<?> list) {
            return (long) list.size();
        }
        if (value instanceof String text) {
            return (long) text.getBytes(StandardCharsets.UTF_8).length;
        }
        if (value instanceof byte[] bytes) {
            return (long) bytes.length;
        }
        throw new Mismatch("it has no size");
    }

    /** A value for a person, shortened. */
    static String show(Object value) {
        if (value instanceof String text) {
            return text.length() <= 80 ? '"' + text + '"' : "a text of " + text.length();
        }
        if (value instanceof byte[] bytes) {
            return bytes.length <= 32 ? HexFormat.of().formatHex(bytes) : bytes.length + " bytes";
        }
        if (value instanceof List<?> list) {
            return list.stream().limit(5).map(Expectations::show).toList() + (list.size() > 5 ? " … " + list.size() + " in all" : "");
        }
        if (value instanceof Map<?, ?> fields) {
            List<String> shown = new ArrayList<>();
            fields.forEach((name, field) -> shown.add(name + ": " + show(field)));
            return "{ " + String.join(", ", shown) + " }";
        }
        return String.valueOf(value);
    }
}
