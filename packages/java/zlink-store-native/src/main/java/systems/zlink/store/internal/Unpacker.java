package systems.zlink.store.internal;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.Arrays;

/** Reads the fields of one record. */
final class Unpacker {
    final byte[] bytes;
    private final int end;
    private int place;

    /** Reads the fields of the record that begins at {@code start}. */
    Unpacker(byte[] bytes, int start) {
        this.bytes = bytes;
        this.end = start + length(bytes, start);
        this.place = start + Wire.HEADER;
    }

    static int kind(byte[] bytes, int start) {
        return (int) Wire.WORD.get(bytes, start);
    }

    static int ticket(byte[] bytes, int start) {
        return (int) Wire.WORD.get(bytes, start + 4);
    }

    /** The word that depends on the kind. */
    static int extra(byte[] bytes, int start) {
        return (int) Wire.WORD.get(bytes, start + 8);
    }

    static int length(byte[] bytes, int start) {
        return (int) Wire.WORD.get(bytes, start + 12);
    }

    int word() {
        int value = (int) Wire.WORD.get(bytes, place);
        place += 4;
        return value;
    }

    double number() {
        double value = (double) Wire.NUMBER.get(bytes, place);
        place += 8;
        return value;
    }

    Instant time() {
        return Instant.ofEpochMilli((long) number());
    }

    /** An instant, or {@code null} where there is none. */
    Instant timeOrNull() {
        double value = number();
        return Double.isNaN(value) ? null : Instant.ofEpochMilli((long) value);
    }

    String text() {
        return text(word());
    }

    String text(int length) {
        String text = new String(bytes, place, length, StandardCharsets.UTF_8);
        place += length;
        return text;
    }

    byte[] part(int length) {
        byte[] part = Arrays.copyOfRange(bytes, place, place + length);
        place += length;
        return part;
    }

    /** All that is left of the record. */
    byte[] rest() {
        return part(end - place);
    }
}
