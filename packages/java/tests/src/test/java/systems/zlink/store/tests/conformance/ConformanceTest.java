package systems.zlink.store.tests.conformance;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import systems.zlink.store.tests.support.Engine;
import systems.zlink.store.tests.support.Project;
import systems.zlink.store.tests.support.TestServer;

/** Every scenario of tests/conformance against every engine: one test each, {@code engine/group/name}. */
@Execution(ExecutionMode.CONCURRENT)
class ConformanceTest {
    private static final Map<Engine, Set<String>> EXECUTED = new ConcurrentHashMap<>();
    private static final Map<Engine, TestServer> SERVERS = new EnumMap<>(Engine.class);
    private static int scenarios;

    @BeforeAll
    static void startServers() {
        for (Engine engine : Engine.chosen()) {
            SERVERS.put(engine, engine.start());
        }
    }

    /** What was executed, for {@code compare.mjs}. */
    @AfterAll
    static void writeLists() throws IOException {
        SERVERS.values().stream().filter(Objects::nonNull).forEach(TestServer::close);
        Path folder = Files.createDirectories(Project.path("target", "conformance"));
        for (Map.Entry<Engine, Set<String>> executed : EXECUTED.entrySet()) {
            if (executed.getValue().size() == scenarios) {
                Files.write(folder.resolve("java-" + executed.getKey() + ".txt"), executed.getValue());
            }
        }
    }

    @TestFactory
    Stream<DynamicTest> scenarios() throws IOException {
        Map<String, JsonArray> all = read();
        scenarios = all.size();
        List<DynamicTest> tests = new ArrayList<>();
        for (Engine engine : Engine.chosen()) {
            all.forEach((name, steps) -> tests.add(dynamicTest(engine + "/" + name, () -> {
                EXECUTED.computeIfAbsent(engine, none -> new ConcurrentSkipListSet<>()).add(name);
                try (Engine.Place place = engine.newPlace(SERVERS.get(engine)); Run run = new Run(place)) {
                    run.steps(steps, "");
                }
            })));
        }
        return tests.stream();
    }

    private static Map<String, JsonArray> read() throws IOException {
        Map<String, JsonArray> scenarios = new TreeMap<>();
        try (Stream<Path> files = Files.list(Project.path("tests", "conformance"))) {
            for (Path file : files.filter(ConformanceTest::isData).toList()) {
                JsonObject group = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
                for (JsonElement element : group.getAsJsonArray("scenarios")) {
                    JsonObject scenario = element.getAsJsonObject();
                    scenarios.put(
                            group.get("group").getAsString() + "/" + scenario.get("name").getAsString(), scenario.getAsJsonArray("steps"));
                }
            }
        }
        return scenarios;
    }

    private static boolean isData(Path file) {
        return file.toString().endsWith(".json") && !file.toString().endsWith(".schema.json");
    }
}
