package systems.zlink.store.tests.loading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import systems.zlink.store.tests.support.Child;
import systems.zlink.store.tests.support.TestServer;

/** The native library is found and loaded wherever the classes are. */
class LoadingTest {
    private static final String WORKOUT = Workout.class.getName();
    private static TestServer redis;

    @TempDir
    Path folder;

    @BeforeAll
    static void start() {
        redis = TestServer.redis();
    }

    @AfterAll
    static void stop() {
        redis.close();
    }

    private static List<Path> everything() {
        List<Path> places = new ArrayList<>(Child.packages());
        places.add(Child.tests());
        return places;
    }

    private static String joined(List<Path> places) {
        return String.join(File.pathSeparator, places.stream().map(Path::toString).toList());
    }

    private Child child() {
        return new Child().classPath(everything());
    }

    private static void worksOut(Child.End end) {
        assertTrue(end.orFail().contains("worked out"), end.said());
    }

    private Child.End fails(Child child) throws Exception {
        Child.End end = child.run(Workout.class, redis.url(), folder.toString());
        assertNotEquals(0, end.code(), end.said());
        return end;
    }

    @Test
    void onTheClassPathLeavingNoFileBehind() throws Exception {
        Path temporary = Files.createDirectory(folder.resolve("temporary"));
        worksOut(child().options("-Djava.io.tmpdir=" + temporary).run(Workout.class, redis.url(), folder.toString()));
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(List.of(), left.filter(file -> file.getFileName().toString().startsWith("zlink")).toList());
        }
    }

    @Test
    void onTheModulePath() throws Exception {
        worksOut(child().options("-p", joined(Child.packages()), "--add-modules", "zlink.framework.locations.redis,zlink.framework.locations.embedded")
                .classPath(List.of(Child.tests()))
                .run(Workout.class, redis.url(), folder.toString()));
    }

    @Test
    void fromAChildClassLoaderWithoutAContextClassLoader() throws Exception {
        worksOut(loaders("child"));
    }

    @Test
    void fromTwoClassLoadersAtOnce() throws Exception {
        worksOut(loaders("two"));
    }

    @Test
    void loadedAgainAfterItsClassLoaderIsGone() throws Exception {
        worksOut(loaders("again"));
    }

    private Child.End loaders(String how, String... options) throws Exception {
        return new Child().options(options).classPath(List.of(onlyLoaders()))
                .run(Loaders.class, how, joined(everything()), redis.url(), folder.toString());
    }

    /** A class path with the class that makes class loaders, and nothing else. */
    private Path onlyLoaders() throws IOException {
        Path place = folder.resolve("loaders");
        String name = Loaders.class.getName().replace('.', '/') + ".class";
        Files.createDirectories(place.resolve(name).getParent());
        Files.copy(Child.tests().resolve(name), place.resolve(name), StandardCopyOption.REPLACE_EXISTING);
        return place;
    }

    /** As Spring Boot packs applications: jars, uncompressed, inside a jar, under a class loader of its own. */
    @Test
    void fromJarsInsideAJar() throws Exception {
        Path jar = folder.resolve("application.jar");
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, "org.springframework.boot.loader.launch.JarLauncher");
        manifest.getMainAttributes().putValue("Start-Class", WORKOUT);
        try (OutputStream file = Files.newOutputStream(jar); JarOutputStream out = new JarOutputStream(file, manifest)) {
            try (JarFile launcher = new JarFile(springBootLoader().toFile())) {
                for (JarEntry entry : launcher.stream().filter(entry -> entry.getName().endsWith(".class")).toList()) {
                    out.putNextEntry(new ZipEntry(entry.getName()));
                    out.write(launcher.getInputStream(entry).readAllBytes());
                }
            }
            for (String inside : List.of("BOOT-INF/", "BOOT-INF/classes/", "BOOT-INF/lib/")) {
                out.putNextEntry(new ZipEntry(inside));
            }
            String workout = WORKOUT.replace('.', '/') + ".class";
            out.putNextEntry(new ZipEntry("BOOT-INF/classes/" + workout));
            out.write(Files.readAllBytes(Child.tests().resolve(workout)));
            for (Path packed : Child.packages()) {
                stored(out, "BOOT-INF/lib/" + packed.getFileName(), Files.readAllBytes(packed));
            }
        }
        worksOut(new Child().classPath(List.of(jar)).run("org.springframework.boot.loader.launch.JarLauncher", redis.url(), folder.toString()));
    }

    private static void stored(JarOutputStream out, String name, byte[] content) throws IOException {
        ZipEntry entry = new ZipEntry(name);
        CRC32 checksum = new CRC32();
        checksum.update(content);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(content.length);
        entry.setCrc(checksum.getValue());
        out.putNextEntry(entry);
        out.write(content);
    }

    private static Path springBootLoader() {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(place -> place.contains("spring-boot-loader")).map(Path::of).findFirst().orElseThrow();
    }

    @Test
    void withoutWriteAccessToTheWorkingDirectory() throws Exception {
        // Not even root may write there.
        worksOut(child().in(Path.of("/proc")).run(Workout.class, redis.url(), folder.toString()));
    }

    @Test
    void aFolderForTemporaryFilesWithoutExecutionIsNamed() throws Exception {
        Path noexec = Files.createDirectory(folder.resolve("noexec"));
        // In a mount name space of its own, which ends with the process.
        String[] mounted = {"unshare", "--mount", "sh", "-c", "mount -t tmpfs -o noexec tmpfs '" + noexec + "' && exec \"$0\" \"$@\""};
        String said = fails(child().by(mounted).options("-Djava.io.tmpdir=" + noexec)).said();
        assertTrue(said.contains("noexec") && said.contains("-Dzlink.store.native.tmpdir=") && said.contains(noexec.toString()), said);
        worksOut(child().by(mounted).options("-Djava.io.tmpdir=" + noexec, "-Dzlink.store.native.tmpdir=" + folder)
                .run(Workout.class, redis.url(), folder.toString()));
    }

    @Test
    void aFolderForTemporaryFilesThatCanNotBeWrittenIsNamed() throws Exception {
        String said = fails(child().options("-Dzlink.store.native.tmpdir=/proc/nowhere")).said();
        assertTrue(said.contains("-Dzlink.store.native.tmpdir=") && said.contains("/proc/nowhere"), said);
    }

    @Test
    void fromAFileThatAPropertyNames() throws Exception {
        String named = "-Dzlink.store.native.path=" + library();
        worksOut(child().options(named, "-Djava.io.tmpdir=/proc/nowhere").run(Workout.class, redis.url(), "/tmp"));
        // A file can be loaded once; the second class loader loads a copy.
        worksOut(loaders("two", named));
        String said = fails(child().options("-Dzlink.store.native.path=" + folder.resolve("none.so"))).said();
        assertTrue(said.contains("none.so") && said.contains("zlink.store.native.path"), said);
    }

    @Test
    void fromTheLibraryPath() throws Exception {
        String path = "-Djava.library.path=" + library().getParent();
        worksOut(child().options(path, "-Djava.io.tmpdir=/proc/nowhere").run(Workout.class, redis.url(), "/tmp"));
        worksOut(loaders("two", path));
    }

    @Test
    void anotherLibraryIsRefused() throws Exception {
        Path other = Path.of(System.getProperty("java.home"), "lib", "libzip.so");
        String said = fails(child().options("-Dzlink.store.native.path=" + other)).said();
        assertTrue(said.contains("is none of zlink-store"), said);
    }

    @Test
    void aPlatformThatIsMissingIsNamed() throws Exception {
        String said = fails(child().options("-Dos.arch=riscv64")).said();
        assertTrue(said.contains("linux-riscv64") && said.contains("zlink-store-jni"), said);
    }

    /** The library out of the jar. */
    private Path library() throws IOException {
        Path file = folder.resolve("own").resolve("libzlink_store_jni.so");
        if (!Files.exists(file)) {
            Files.createDirectories(file.getParent());
            Path jar = Child.packages().stream().filter(place -> place.toString().contains("zlink-store-native")).findFirst().orElseThrow();
            try (JarFile opened = new JarFile(jar.toFile())) {
                Files.copy(opened.getInputStream(opened.getEntry("systems/zlink/store/natives/linux-x86_64/libzlink_store_jni.so")), file);
            }
        }
        return file;
    }
}
