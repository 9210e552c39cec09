package systems.zlink.store.tests.support;

import java.nio.file.Files;
import java.nio.file.Path;

/** Where things are in the project. */
public final class Project {
    private static final Path ROOT = root();

    private Project() {}

    public static Path path(String... parts) {
        Path path = ROOT;
        for (String part : parts) {
            path = path.resolve(part);
        }
        return path;
    }

    private static Path root() {
        Path folder = Path.of("").toAbsolutePath();
        while (!Files.exists(folder.resolve("Cargo.lock"))) {
            folder = folder.getParent();
        }
        return folder;
    }
}
