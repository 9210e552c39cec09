import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What was measured, as `tests/bench/report.mjs` reads it: rows of `tests/bench/goals.json` by their id. */
final class Results {
    private final List<String> about;
    private final Map<String, Object> rows = new LinkedHashMap<>();
    private final List<String> failed = new ArrayList<>();

    Results(List<String> about) {
        this.about = about;
        about.forEach(System.out::println);
    }

    /** Operations per second of two sides, times `scale`; `against` names the rival if the goals leave it open. */
    void speed(String id, Measuring.Side ours, Measuring.Side rival, double scale, String against) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("ours", ours.perSecond().stream().map(figure -> figure * scale).toList());
        row.put("rival", rival.perSecond().stream().map(figure -> figure * scale).toList());
        row.put("cpu", Map.of("ours", cpu(ours), "rival", cpu(rival)));
        if (against != null) {
            row.put("against", against);
        }
        row.put("remarks", String.format("waits of the client %.2f against %.2f",
                Measuring.median(ours.switches()), Measuring.median(rival.switches())));
        add(id, row, ours.speed() / rival.speed());
    }

    private static Map<String, Double> cpu(Measuring.Side side) {
        return Map.of("server", Measuring.median(side.serverMicros()), "client", Measuring.median(side.clientMicros()));
    }

    /** Figures of the rounds in the unit of the goal. */
    void figures(String id, List<Double> ours, List<Double> rival) {
        add(id, Map.of("ours", ours, "rival", rival), Measuring.median(ours) / Measuring.median(rival));
    }

    private void add(String id, Map<String, Object> row, double ratio) {
        rows.put(id, row);
        System.out.printf("   %s: %.2f×%n", id, ratio);
    }

    void failed(String row, Exception failure) {
        failed.add(row + ": " + failure);
        failure.printStackTrace();
    }

    /** Writes `target/bench/java.json`; whether all rows could be measured. */
    boolean write() throws IOException {
        Path folder = Files.createDirectories(Path.of("target/bench"));
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("part", "java");
        result.put("about", about);
        result.put("rows", rows);
        result.put("plots", Map.of());
        result.put("failed", failed);
        new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT).writeValue(folder.resolve("java.json").toFile(), result);
        return failed.isEmpty();
    }
}
