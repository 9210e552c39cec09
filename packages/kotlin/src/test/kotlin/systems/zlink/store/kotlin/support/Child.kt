package systems.zlink.store.kotlin.support

import java.nio.file.Files
import java.nio.file.Path
import java.util.concurrent.TimeUnit

/** Runs a program to its end and gives back what it wrote; fails unless it ends with 0. */
fun runProgram(command: List<String>, folder: Path? = null): String {
    val output = Files.createTempFile("zlink-store-child-", ".txt")
    try {
        val process = ProcessBuilder(command).directory(folder?.toFile()).redirectErrorStream(true)
            .redirectOutput(output.toFile()).start()
        process.outputStream.close()
        if (!process.waitFor(LONGEST_S, TimeUnit.SECONDS)) {
            process.destroyForcibly().waitFor()
            throw AssertionError("it did not end: $command\n${Files.readString(output)}")
        }
        val said = Files.readString(output)
        if (process.exitValue() != 0) {
            throw AssertionError("ended with ${process.exitValue()}:\n$said")
        }
        return said
    } finally {
        Files.delete(output)
    }
}

/** Runs a main class in a virtual machine of its own, with its [options], started [by] another program. */
fun runJava(
    main: String,
    vararg arguments: String,
    classPath: String = System.getProperty("java.class.path"),
    options: List<String> = emptyList(),
    by: List<String> = emptyList(),
): String {
    val java = "${Path.of(System.getProperty("java.home"), "bin", "java")}"
    return runProgram(by + java + options + listOf("-cp", classPath, main) + arguments)
}

private const val LONGEST_S = 240L
