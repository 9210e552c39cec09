package systems.zlink.store.kotlin.consumer

import java.io.File
import java.nio.file.FileVisitResult
import java.nio.file.Files
import java.nio.file.Path
import java.util.jar.JarFile
import kotlin.io.path.ExperimentalPathApi
import kotlin.io.path.createDirectories
import kotlin.io.path.deleteRecursively
import kotlin.io.path.readText
import kotlin.io.path.visitFileTree
import kotlin.io.path.writeText
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeAll
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import systems.zlink.store.kotlin.support.inProject
import systems.zlink.store.kotlin.support.runJava
import systems.zlink.store.kotlin.support.runProgram

/** A project that has nothing of this one but the artifact, out of the repository that the build has filled. */
class ConsumerTest {
    @TempDir
    lateinit var folder: Path

    private val pom = inProject("packages", "kotlin", "pom.xml").readText()

    private fun property(name: String) = pom.substringAfter("<$name>").substringBefore("</$name>")

    @Test
    fun `the artifact has the version of the project, and the jar what it must`() {
        val version = property("version")
        assertTrue("[workspace.package]\nversion = \"$version\"" in inProject("Cargo.toml").readText())
        val jar = REPOSITORY.resolve("systems/zlink/zlink-store-kotlin/$version/zlink-store-kotlin-$version.jar")
        JarFile(jar.toFile()).use { opened ->
            assertEquals("zlink.store.kotlin", opened.manifest.mainAttributes.getValue("Automatic-Module-Name"))
            assertTrue(opened.getEntry("linux-x86-64/libzlink_store_uniffi.so") != null)
        }
    }

    @Test
    fun `a project of Maven compiles and runs the example of the README`() {
        val readme = inProject("README.md").readText()
        val example = Regex("```kotlin\n(.*?)```", RegexOption.DOT_MATCHES_ALL).findAll(readme).single().groupValues[1]
        assertEquals(inProject("packages", "kotlin", "examples", "FirstSteps.kt").readText(), example)
        folder.resolve("src/main/kotlin").createDirectories().resolve("FirstSteps.kt").writeText(example)
        val dependency = readme.substringBefore("<artifactId>zlink-store-kotlin</artifactId>").substringAfterLast("```xml\n") +
            "<artifactId>zlink-store-kotlin</artifactId>" +
            readme.substringAfter("<artifactId>zlink-store-kotlin</artifactId>").substringBefore("```")
        folder.resolve("pom.xml").writeText(
            """
            <project xmlns="http://maven.apache.org/POM/4.0.0">
              <modelVersion>4.0.0</modelVersion>
              <groupId>consumer</groupId>
              <artifactId>consumer</artifactId>
              <version>1</version>
              <dependencies>$dependency</dependencies>
              <repositories><repository><id>build</id><url>${REPOSITORY.toUri()}</url></repository></repositories>
              <build>
                <sourceDirectory>src/main/kotlin</sourceDirectory>
                <plugins>
                  <plugin>
                    <groupId>org.jetbrains.kotlin</groupId>
                    <artifactId>kotlin-maven-plugin</artifactId>
                    <version>${property("kotlin.version")}</version>
                    <configuration><jvmTarget>17</jvmTarget></configuration>
                    <executions><execution><phase>compile</phase><goals><goal>compile</goal></goals></execution></executions>
                  </plugin>
                  <plugin><artifactId>maven-resources-plugin</artifactId><version>3.5.0</version></plugin>
                  <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.14.0</version></plugin>
                </plugins>
              </build>
            </project>
            """.trimIndent(),
        )
        val maven = listOf("mvn", "-B", "-q", "-o", "-Daether.offline.protocols=file", "-Dkotlin.compiler.daemon=false", "-Dmaven.repo.local=$local", "compile")
        runProgram(maven, folder)
        // Of everything that the project depends on, only the artifact came by way of Maven here; the rest is what it needs.
        val artifact = Files.walk(local.resolve("systems/zlink")).use { files -> files.filter { "$it".endsWith(".jar") }.toList() }
        val libraries = System.getProperty("java.class.path").split(File.pathSeparator)
            .filter { place -> listOf("kotlin-stdlib", "kotlinx-coroutines-core", "/jna/", "/annotations/").any { it in place } }
        val classPath = (artifact + libraries + "${folder.resolve("target/classes")}").joinToString(File.pathSeparator)
        val said = runJava("FirstStepsKt", classPath = classPath)
        assertTrue(said.startsWith("node-1 until "), said)
    }

    companion object {
        private val REPOSITORY = inProject("target", "maven-repository")

        /** Maven's own files, without any artifact of ours: the project sees what the build has made now. */
        private lateinit var local: Path

        @OptIn(ExperimentalPathApi::class)
        @BeforeAll
        @JvmStatic
        fun linkOthers() {
            assertTrue(Files.isDirectory(REPOSITORY), "make build-kotlin fills $REPOSITORY")
            local = Files.createTempDirectory("zlink-store-consumers-")
            val from = Path.of(System.getProperty("localRepository"))
            from.visitFileTree {
                onPreVisitDirectory { place, _ ->
                    if (place.endsWith("systems/zlink")) {
                        FileVisitResult.SKIP_SUBTREE
                    } else {
                        local.resolve(from.relativize(place)).createDirectories()
                        FileVisitResult.CONTINUE
                    }
                }
                onVisitFile { file, _ ->
                    Files.createSymbolicLink(local.resolve(from.relativize(file)), file)
                    FileVisitResult.CONTINUE
                }
            }
        }

        @OptIn(ExperimentalPathApi::class)
        @AfterAll
        @JvmStatic
        fun unlink() = local.deleteRecursively()
    }
}
