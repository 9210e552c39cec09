package systems.zlink.store.tests.consumer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import systems.zlink.store.tests.support.Child;
import systems.zlink.store.tests.support.Project;

/** Projects that have nothing of this one but the artifacts, out of the repository that the build has filled. */
class ConsumerTest {
    private static final Path REPOSITORY = Project.path("target", "maven-repository");
    private static final String VERSION = version();

    /** Maven's own files, without any artifact of this project: a project of the test's sees what the build has made now. */
    private static Path local;

    @TempDir
    Path folder;

    @BeforeAll
    static void linkPlugins() throws IOException {
        assertTrue(Files.isDirectory(REPOSITORY), "make build-java fills " + REPOSITORY);
        local = Files.createTempDirectory("zlink-store-consumers-");
        Path from = Path.of(System.getProperty("localRepository"));
        Files.walkFileTree(from, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path place, BasicFileAttributes attributes) throws IOException {
                if (place.endsWith("systems/zlink")) {
                    return FileVisitResult.SKIP_SUBTREE;
                }
                Files.createDirectories(local.resolve(from.relativize(place)));
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.createSymbolicLink(local.resolve(from.relativize(file)), file);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    @AfterAll
    static void unlinkPlugins() throws IOException {
        remove(local);
    }

    private static void remove(Path place) throws IOException {
        if (Files.exists(place)) {
            try (Stream<Path> files = Files.walk(place)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private static String version() {
        try {
            String pom = Files.readString(Project.path("packages", "java", "pom.xml"));
            return pom.replaceAll("(?s).*?<version>(.*?)</version>.*", "$1");
        } catch (IOException error) {
            throw new AssertionError(error);
        }
    }

    @Test
    void allArtifactsHaveTheVersionOfTheProject() throws IOException {
        String cargo = Files.readString(Project.path("Cargo.toml"));
        assertTrue(cargo.contains("[workspace.package]\nversion = \"" + VERSION + "\""));
        try (Stream<Path> artifacts = Files.list(REPOSITORY.resolve("systems/zlink"))) {
            assertEquals(
                    List.of("zlink-framework-locations-embedded", "zlink-framework-locations-redis", "zlink-framework-provider-abstractions",
                            "zlink-project-state", "zlink-store-native", "zlink-store-parent"),
                    // Kotlin's lies beside them, where it was built.
                    artifacts.map(artifact -> artifact.getFileName().toString()).filter(name -> !name.equals("zlink-store-kotlin")).sorted()
                            .toList());
        }
    }

    @Test
    void aProjectOnTheClassPath() throws Exception {
        Path sources = project();
        Files.copy(example(), sources.resolve("FirstSteps.java"));
        List<Path> jars = build();
        jars.add(folder.resolve("target/classes"));
        assertTrue(new Child().classPath(jars).run("FirstSteps").orFail().startsWith("node-1 until "));
    }

    @Test
    void aProjectWithModules() throws Exception {
        Path sources = project();
        Files.createDirectory(sources.resolve("app"));
        Files.writeString(sources.resolve("app/FirstSteps.java"), "package app;\n" + Files.readString(example()));
        Files.writeString(sources.resolve("module-info.java"), "module app { requires zlink.framework.locations.embedded; }\n");
        List<Path> jars = build();
        jars.add(folder.resolve("target/classes"));
        String modules = jars.stream().map(Path::toString).collect(Collectors.joining(":"));
        Child child = new Child().access("zlink.store.nativelib").options("-p", modules, "-m").classPath(List.of());
        String said = child.run("app/app.FirstSteps").orFail();
        assertTrue(said.startsWith("node-1 until "), said);
    }

    /** What a provider of somebody else's needs. */
    @Test
    void aProviderNeedsTheAbstractionsAlone() throws Exception {
        Path sources = project();
        Files.createDirectory(sources.resolve("own"));
        Files.writeString(sources.resolve("own/Own.java"), """
                package own;

                import java.time.Instant;
                import java.util.concurrent.CompletableFuture;
                import java.util.concurrent.CompletionStage;
                import systems.zlink.framework.locationprovider.*;

                public class Own implements ZLinkLocationStore {
                    public CompletionStage<ZLinkStoreReadResult> read(ZLinkStoreKey key, ZLinkStoreCancellation cancellation) {
                        return CompletableFuture.completedStage(new ZLinkStoreReadMissing(Instant.EPOCH));
                    }

                    public CompletionStage<ZLinkStoreWriteResult> write(ZLinkStoreWriteRequest request, ZLinkStoreCancellation cancellation) {
                        return CompletableFuture.completedStage(new ZLinkStoreWriteConflict(Instant.EPOCH));
                    }

                    public CompletionStage<ZLinkStoreScanResult> scan(ZLinkStoreScanRequest request, ZLinkStoreCancellation cancellation) {
                        return CompletableFuture.completedStage(new ZLinkStoreScanExpired());
                    }
                }
                """);
        Files.writeString(sources.resolve("module-info.java"), "module own.provider { requires zlink.framework.provider.abstractions; }\n");
        assertEquals(1, build("zlink-framework-provider-abstractions").size());
    }

    @Test
    void theReadmeShowsThatExample() throws IOException {
        String readme = Files.readString(Project.path("README.md"));
        List<String> lines = Files.readAllLines(example());
        String body = lines.subList(lines.indexOf("    public static void main(String[] arguments) {") + 1, lines.size() - 2).stream()
                .map(line -> line.isEmpty() ? line : line.substring(8)).collect(Collectors.joining("\n"));
        assertTrue(readme.contains(body), "the README does not have:\n" + body);
    }

    private static Path example() {
        return Project.path("packages", "java", "examples", "FirstSteps.java");
    }

    private Path project() throws IOException {
        return Files.createDirectories(folder.resolve("src/main/java"));
    }

    private List<Path> build() throws Exception {
        return build("zlink-framework-locations-embedded");
    }

    /** Builds the project with Maven, offline, and gives the jars back that it depends on. */
    private List<Path> build(String dependency) throws Exception {
        Files.writeString(folder.resolve("pom.xml"), """
                <project xmlns="http://maven.apache.org/POM/4.0.0">
                  <modelVersion>4.0.0</modelVersion>
                  <groupId>consumer</groupId>
                  <artifactId>consumer</artifactId>
                  <version>1</version>
                  <properties>
                    <maven.compiler.release>17</maven.compiler.release>
                    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
                  </properties>
                  <dependencies>
                    <dependency>
                      <groupId>systems.zlink</groupId>
                      <artifactId>%s</artifactId>
                      <version>%s</version>
                    </dependency>
                  </dependencies>
                  <repositories>
                    <repository>
                      <id>build</id>
                      <url>%s</url>
                    </repository>
                  </repositories>
                  <build>
                    <plugins>
                      <plugin>
                        <artifactId>maven-resources-plugin</artifactId>
                        <version>3.5.0</version>
                      </plugin>
                      <plugin>
                        <artifactId>maven-compiler-plugin</artifactId>
                        <version>3.14.0</version>
                      </plugin>
                    </plugins>
                  </build>
                </project>
                """.formatted(dependency, VERSION, REPOSITORY.toUri()));
        remove(local.resolve("systems"));
        Child.End end = Child.run(
                List.of("mvn", "-B", "-q", "-o", "-Daether.offline.protocols=file", "-Dmaven.repo.local=" + local, "compile"), folder);
        assertEquals(0, end.code(), end.said());
        List<Path> jars = new ArrayList<>();
        try (Stream<Path> files = Files.walk(local.resolve("systems/zlink"))) {
            files.filter(file -> file.toString().endsWith(".jar")).forEach(jars::add);
        }
        return jars;
    }
}
