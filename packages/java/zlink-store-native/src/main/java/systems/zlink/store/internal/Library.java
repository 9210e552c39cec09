package systems.zlink.store.internal;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Properties;

/**
 * Finds and loads the native library: the file that a system property names, else one in {@code java.library.path}, else the one in our
 * jar, by way of a temporary file.
 */
final class Library {
    static final String FILE = "zlink.store.native.path";
    static final String TEMPORARY = "zlink.store.native.tmpdir";
    private static final String NAME = "zlink_store_jni";

    private static volatile boolean loaded;

    private Library() {}

    /** Loads the library unless that is done. A failure is thrown at every try, and says what to do. */
    static void load() {
        if (!loaded) {
            loadOnce();
        }
    }

    @SuppressWarnings("restricted")
    private static synchronized void loadOnce() {
        if (loaded) {
            return;
        }
        String named = System.getProperty(FILE);
        if (named != null) {
            loadFile(Path.of(named).toAbsolutePath());
        } else {
            try {
                System.loadLibrary(NAME);
            } catch (UnsatisfiedLinkError notThere) {
                loadFromJar(notThere);
            }
        }
        checkVersion();
        loaded = true;
    }

    @SuppressWarnings("restricted")
    private static void loadFile(Path file) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError error) {
            if (!isLoadedElsewhere(error)) {
                throw failure("The native library " + file + " (named by " + FILE + ") could not be loaded", error);
            }
            // Another class loader has it already; a copy is another library.
            try (InputStream content = Files.newInputStream(file)) {
                loadCopy(content);
            } catch (IOException unreadable) {
                throw failure("The native library " + file + " could not be read", unreadable);
            }
        }
    }

    private static void loadFromJar(UnsatisfiedLinkError notInPath) {
        String resource = "/systems/zlink/store/natives/" + platform() + "/" + System.mapLibraryName(NAME);
        // A class's own loader finds it, whatever the thread's context class loader is.
        try (InputStream content = Library.class.getResourceAsStream(resource)) {
            if (content == null) {
                String found = isLoadedElsewhere(notInPath)
                        ? "another class loader has the one in java.library.path"
                        : "zlink-store-native has none for it";
                throw failure("There is no native library of zlink-store for " + platform() + ": " + found
                        + ". Build zlink-store-jni on this platform and name the file with -D" + FILE + "=…", notInPath);
            }
            loadCopy(content);
        } catch (IOException error) {
            throw failure("The native library could not be copied out of the jar (" + error.getMessage()
                    + "). Name a folder that can be written with -D" + TEMPORARY + "=…", error);
        }
    }

    @SuppressWarnings("restricted")
    private static void loadCopy(InputStream content) throws IOException {
        String folder = System.getProperty(TEMPORARY, System.getProperty("java.io.tmpdir"));
        // A folder of our own, which nobody else can enter, so that nobody can put another file in its place.
        Path own = Files.createTempDirectory(Path.of(folder), "zlink-store-");
        Path file = own.resolve(System.mapLibraryName(NAME));
        try {
            Files.copy(content, file);
            System.load(file.toAbsolutePath().toString());
        } catch (UnsatisfiedLinkError error) {
            throw failure("The native library could not be loaded from the folder for temporary files, " + folder + ". If that is mounted"
                    + " noexec, name another folder with -D" + TEMPORARY + "=…, or the library itself with -D" + FILE + "=…", error);
        } finally {
            remove(file);
            remove(own);
        }
    }

    private static void remove(Path path) {
        try {
            Files.deleteIfExists(path);
        } catch (IOException inUse) {
            // Some systems do not remove a library that is in use.
            path.toFile().deleteOnExit();
        }
    }

    private static void checkVersion() {
        String ours = version();
        String theirs;
        try {
            theirs = new String(Native.version(), StandardCharsets.UTF_8);
        } catch (UnsatisfiedLinkError error) {
            throw failure("The native library that was loaded is none of zlink-store " + ours, error);
        }
        if (!ours.equals(theirs)) {
            throw new UnsatisfiedLinkError("The native library that was loaded is of zlink-store " + theirs + ", but the classes are of " + ours
                    + ": is an old one in java.library.path?");
        }
    }

    /** The version of these classes. */
    static String version() {
        Properties properties = new Properties();
        try (InputStream content = Library.class.getResourceAsStream("version.properties")) {
            properties.load(content);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return properties.getProperty("version");
    }

    /** Such as {@code linux-x86_64}. */
    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String name = system.startsWith("windows") ? "windows" : system.startsWith("mac") ? "macos" : system;
        return name + "-" + (machine.equals("amd64") ? "x86_64" : machine.equals("arm64") ? "aarch64" : machine);
    }

    private static boolean isLoadedElsewhere(UnsatisfiedLinkError error) {
        return error.getMessage() != null && error.getMessage().contains("already loaded in another classloader");
    }

    private static UnsatisfiedLinkError failure(String said, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(said + " [" + cause.getMessage() + "]");
        error.initCause(cause);
        return error;
    }
}
