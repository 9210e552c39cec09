package systems.zlink.store.internal;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;

/** Hands log events of the native library to {@link System.Logger}. */
final class Logs {
    private static final Logger LOGGER = System.getLogger("systems.zlink.store");

    private Logs() {}

    /** Asks the native library for the events that the logger wants. */
    static void listen() {
        for (Level level : new Level[] {Level.TRACE, Level.DEBUG, Level.INFO, Level.WARNING, Level.ERROR}) {
            if (LOGGER.isLoggable(level)) {
                String name = level == Level.WARNING ? "warn" : level.name().toLowerCase(java.util.Locale.ROOT);
                Native.log(name.getBytes(StandardCharsets.US_ASCII));
                return;
            }
        }
    }

    static void take(Unpacker fields) {
        String name = fields.text();
        fields.text(); // The place in the native code.
        String message = fields.text();
        Level level = switch (name) {
            case "error" -> Level.ERROR;
            case "warn" -> Level.WARNING;
            case "info" -> Level.INFO;
            case "debug" -> Level.DEBUG;
            default -> Level.TRACE;
        };
        // A logger is foreign code.
        Completions.runSoon(() -> LOGGER.log(level, message));
    }

    static void failed(String doing, Throwable failure) {
        Completions.runSoon(() -> LOGGER.log(Level.ERROR, "Failure while " + doing, failure));
    }
}
