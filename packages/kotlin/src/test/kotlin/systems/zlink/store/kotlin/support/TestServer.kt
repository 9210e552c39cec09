package systems.zlink.store.kotlin.support

import com.google.gson.JsonObject
import com.google.gson.JsonParser

/** A server of the tests' own, started by `zlink-test-servers`; it ends when this is closed, or when this process ends. */
class TestServer(vararg options: String) : AutoCloseable {
    private val process = ProcessBuilder(listOf("${inProject("target", "debug", "zlink-test-servers")}", "single") + options)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start()
    private val answers = process.inputReader()
    private val commands = process.outputWriter()
    private val told = answer()

    val url: String get() = told["url"].asString

    val proxyUrl: String get() = told["proxyUrl"].asString

    /** Has a command obeyed, and gives its answer back. */
    @Synchronized
    fun obey(command: String): JsonObject {
        commands.write(command + "\n")
        commands.flush()
        return answer().also { answer -> check(!answer.has("error")) { "$command: ${answer["error"]}" } }
    }

    private fun answer(): JsonObject =
        JsonParser.parseString(checkNotNull(answers.readLine()) { "zlink-test-servers has ended" }).asJsonObject

    override fun close() {
        commands.close()
        process.waitFor()
    }
}
