package systems.zlink.store.tests.support;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A virtual machine of its own, of the version that runs the tests. */
public final class Child {
    private static final long LONGEST_S = 300;

    private final List<String> options = new ArrayList<>();
    private String classPath = System.getProperty("java.class.path");
    private String access = "ALL-UNNAMED";
    private Path folder;
    private final List<String> around = new ArrayList<>();

    /**
     * How it ended.
     *
     * @param said what it wrote, on both streams
     */
    public record End(int code, String said) {
        public String orFail() {
            // What -Xcheck:jni has to say.
            if (code != 0 || said.contains("in native method")) {
                throw new AssertionError("ended with " + code + ":\n" + said);
            }
            return said;
        }
    }

    public Child options(String... more) {
        options.addAll(Arrays.asList(more));
        return this;
    }

    public Child classPath(List<Path> places) {
        classPath = places.isEmpty() ? null : String.join(File.pathSeparator, places.stream().map(Path::toString).toList());
        return this;
    }

    /** The module that may load the native library, where there are modules. */
    public Child access(String module) {
        access = module;
        return this;
    }

    public Child in(Path place) {
        folder = place;
        return this;
    }

    /** Runs it by way of another program. */
    public Child by(String... program) {
        around.addAll(Arrays.asList(program));
        return this;
    }

    public End run(Class<?> main, String... arguments) throws IOException, InterruptedException {
        return run(main.getName(), arguments);
    }

    public End run(String main, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(around);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Xcheck:jni");
        if (Runtime.version().feature() >= 22) {
            command.add("--enable-native-access=" + access);
        }
        command.addAll(options);
        if (classPath != null) {
            command.addAll(List.of("-cp", classPath));
        }
        command.add(main);
        command.addAll(Arrays.asList(arguments));
        return run(command, folder);
    }

    /** Runs any program. */
    public static End run(List<String> command, Path folder) throws IOException, InterruptedException {
        Path output = Files.createTempFile("zlink-store-child-", ".txt");
        try {
            Process process = new ProcessBuilder(command)
                    .directory(folder == null ? null : folder.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(output.toFile())
                    .start();
            process.getOutputStream().close();
            if (!process.waitFor(LONGEST_S, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
                throw new AssertionError("it did not end: " + command + "\n" + Files.readString(output));
            }
            return new End(process.exitValue(), Files.readString(output, StandardCharsets.UTF_8));
        } finally {
            Files.delete(output);
        }
    }

    /** The jars of the packages, without the tests. */
    public static List<Path> packages() {
        return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(place -> place.contains("zlink-") && !place.contains("test-classes"))
                .map(Path::of)
                .toList();
    }

    /** Where the classes of the tests are. */
    public static Path tests() {
        return Path.of(Child.class.getProtectionDomain().getCodeSource().getLocation().getPath());
    }
}
