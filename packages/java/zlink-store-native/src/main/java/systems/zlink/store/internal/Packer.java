package systems.zlink.store.internal;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Packs one request. */
final class Packer {
    /** A byte string of at least this size goes beside the request, copied once; a smaller one is cheaper to copy twice. */
    private static final int BESIDE_FROM = 4 * 1024;

    private byte[] bytes;
    private int length;
    private List<byte[]> beside;

    Packer(int expected) {
        bytes = new byte[expected];
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    byte[][] beside() {
        return beside == null ? null : beside.toArray(byte[][]::new);
    }

    Packer flag(byte value) {
        room(1);
        bytes[length++] = value;
        return this;
    }

    Packer word(int value) {
        room(4);
        Wire.WORD.set(bytes, length, value);
        length += 4;
        return this;
    }

    Packer number(double value) {
        room(8);
        Wire.NUMBER.set(bytes, length, value);
        length += 8;
        return this;
    }

    /** A number that may be left out. */
    Packer optional(Number value) {
        return value == null ? flag(Wire.LEFT_OUT) : flag(Wire.THERE).number(value.doubleValue());
    }

    /** A text as UTF-8. A lone surrogate becomes three bytes that are no UTF-8, which the native side refuses with the right name. */
    Packer text(String text) {
        int units = text.length();
        room(Math.addExact(4, Math.multiplyExact(3, units)));
        int start = length + 4;
        int end = start;
        for (int index = 0; index < units; index++) {
            char unit = text.charAt(index);
            if (unit < 0x80) {
                bytes[end++] = (byte) unit;
            } else if (unit < 0x800) {
                bytes[end++] = (byte) (0xC0 | unit >> 6);
                bytes[end++] = (byte) (0x80 | unit & 0x3F);
            } else if (Character.isHighSurrogate(unit) && index + 1 < units && Character.isLowSurrogate(text.charAt(index + 1))) {
                int point = Character.toCodePoint(unit, text.charAt(++index));
                bytes[end++] = (byte) (0xF0 | point >> 18);
                bytes[end++] = (byte) (0x80 | point >> 12 & 0x3F);
                bytes[end++] = (byte) (0x80 | point >> 6 & 0x3F);
                bytes[end++] = (byte) (0x80 | point & 0x3F);
            } else {
                bytes[end++] = (byte) (0xE0 | unit >> 12);
                bytes[end++] = (byte) (0x80 | unit >> 6 & 0x3F);
                bytes[end++] = (byte) (0x80 | unit & 0x3F);
            }
        }
        Wire.WORD.set(bytes, length, end - start);
        length = end;
        return this;
    }

    /** The bytes of a value or payload, here or beside. */
    Packer value(byte[] value) {
        if (value.length >= BESIDE_FROM) {
            if (beside == null) {
                beside = new ArrayList<>();
            }
            beside.add(value);
            return flag(Wire.BESIDE);
        }
        flag(Wire.HERE).word(value.length).room(value.length);
        System.arraycopy(value, 0, bytes, length, value.length);
        length += value.length;
        return this;
    }

    /** The length of a value or payload alone. */
    Packer elsewhere(int size) {
        return flag(Wire.ELSEWHERE).word(size);
    }

    private void room(int more) {
        int needed = Math.addExact(length, more);
        if (needed > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(needed, bytes.length + (bytes.length >> 1)));
        }
    }
}
