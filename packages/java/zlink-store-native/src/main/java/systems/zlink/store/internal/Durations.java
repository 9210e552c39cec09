package systems.zlink.store.internal;

import java.time.Duration;

/** Durations in whole milliseconds. */
final class Durations {
    private Durations() {}

    /**
     * The milliseconds of a duration, parts of one rounded up (a negative one stays negative); what no {@code long} holds becomes the nearest
     * one that does.
     */
    static long millis(Duration duration) {
        try {
            if (duration.isNegative()) {
                return Math.min(-1, duration.toMillis());
            }
            return duration.plusNanos(999_999).toMillis();
        } catch (ArithmeticException tooLarge) {
            return duration.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }
}
