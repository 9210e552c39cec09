package systems.zlink.store.tests.support;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A server of the tests' own, started by {@code zlink-test-servers}; it ends when this is closed, or when this process ends. */
public final class TestServer implements AutoCloseable {
    private final Process process;
    private final BufferedReader answers;
    private final BufferedWriter commands;
    private final JsonObject told;

    /** Starts a Redis server; {@code options} are those of the program's {@code single}. */
    public static TestServer redis(String... options) {
        List<String> arguments = new ArrayList<>(List.of("single"));
        arguments.addAll(List.of(options));
        return start(arguments);
    }

    /** Starts servers; the arguments are the program's. */
    public static TestServer start(List<String> arguments) {
        List<String> command = new ArrayList<>(List.of(Project.path("target", "debug", "zlink-test-servers").toString()));
        command.addAll(arguments);
        return new TestServer(command);
    }

    private TestServer(List<String> command) {
        try {
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        } catch (IOException error) {
            throw new UncheckedIOException("cargo build -p zlink-test-servers", error);
        }
        answers = process.inputReader(StandardCharsets.UTF_8);
        commands = process.outputWriter(StandardCharsets.UTF_8);
        told = answer();
    }

    public String url() {
        return told.get("url").getAsString();
    }

    public String proxyUrl() {
        return told.get("proxyUrl").getAsString();
    }

    public String text(String name) {
        return told.get(name).getAsString();
    }

    /** Has a command obeyed, and gives its answer back. */
    public synchronized JsonObject obey(String command) {
        try {
            commands.write(command);
            commands.newLine();
            commands.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        JsonObject answer = answer();
        JsonElement error = answer.get("error");
        if (error != null) {
            throw new IllegalStateException(command + ": " + error.getAsString());
        }
        return answer;
    }

    private JsonObject answer() {
        try {
            String line = answers.readLine();
            if (line == null) {
                throw new IllegalStateException("zlink-test-servers has ended");
            }
            return JsonParser.parseString(line).getAsJsonObject();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void close() {
        try {
            commands.close();
            process.waitFor();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
