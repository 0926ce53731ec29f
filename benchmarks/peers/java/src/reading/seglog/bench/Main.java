package seglog.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.function.Function;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** One JSON object per line: what to do with which log, how often; the answer has seconds, and what it came to. */
public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ExecutorService POOL = Executors.newFixedThreadPool(2);

    private static final More MORE = more();

    private Main() {
    }

    /** Works that need more of Kafka than the classes of records. */
    interface More {
        /** One pass; how long it took is told. */
        List<Contents> pass(JsonNode request, Consumer<Long> spent) throws Exception;
    }

    private static More more() {
        try {
            return (More) Class.forName("seglog.bench.Broker").getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException none) {
            return (request, spent) -> {
                throw new IllegalArgumentException("no such work");
            };
        }
    }

    /** Answers until the input ends. */
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Exception | OutOfMemoryError error) {
                answer.removeAll().put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
            System.out.flush();
        }
        System.exit(0);
    }

    private static void answer(JsonNode request, ObjectNode answer) throws Exception {
        if (request.path("work").asText().equals("hello")) {
            answer.put("version", "Kafka " + AppInfoParser.getVersion() + ", Java " + Runtime.version());
            return;
        }
        ArrayNode seconds = answer.putArray("seconds");
        List<Contents> found = List.of();
        for (int pass = 0; pass < request.path("passes").asInt(1); pass++) {
            found = pass(request, nanoseconds -> seconds.add(nanoseconds / 1e9));
        }
        ArrayNode parts = answer.putArray("parts");
        for (Contents part : found) {
            parts.addArray().add(Long.toUnsignedString(part.number)).add(part.count);
        }
    }

    private static List<Contents> pass(JsonNode request, Consumer<Long> spent) throws Exception {
        boolean check = request.path("check").asBoolean();
        if (request.path("how").asText().equals("loop")) {
            return MORE.pass(request, spent);
        }
        return switch (request.path("work").asText()) {
            case "scan" -> read(request, spent, Reading::scan);
            case "crc" -> read(request, spent, Reading::crc);
            case "visit" -> read(request, spent, records -> Reading.visit(records, check));
            case "columns" -> read(request, spent, records -> Reading.columns(records, check));
            default -> MORE.pass(request, spent);
        };
    }

    static List<Contents> read(
            JsonNode request, Consumer<Long> spent, Function<Records, Contents> work)
            throws Exception {
        List<Records> parts = Data.parts(
            request.path("path").asText(), request.path("how").asText("mmap"), request.path("threads").asInt(1));
        long start = System.nanoTime();
        List<Contents> found = new ArrayList<>();
        if (parts.size() == 1) {
            found.add(work.apply(parts.get(0)));
        } else {
            List<Callable<Contents>> tasks = new ArrayList<>();
            parts.forEach(part -> tasks.add(() -> work.apply(part)));
            for (Future<Contents> done : POOL.invokeAll(tasks)) {
                found.add(done.get());
            }
        }
        spent.accept(System.nanoTime() - start);
        return found;
    }
}
