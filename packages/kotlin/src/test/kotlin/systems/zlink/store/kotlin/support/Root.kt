package systems.zlink.store.kotlin.support

import java.nio.file.Files
import java.nio.file.Path

private val ROOT: Path =
    generateSequence(Path.of("").toAbsolutePath()) { it.parent }.first { Files.exists(it.resolve("Cargo.lock")) }

/** Where something is in the project. */
fun inProject(vararg parts: String): Path = parts.fold(ROOT, Path::resolve)
