package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Answers requests about clusters with Kafka's own classes: one JSON object per line in, one per line out.
 *
 * <p>A request names its operation in {@code op}. What an operation throws comes back as {@code error}, the name of the
 * class, and {@code message}.
 */
public final class Cluster {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final Map<String, Operation> OPERATIONS = Map.ofEntries(
        Map.entry("image", Images::image),
        Map.entry("fill", Filled::fill),
        Map.entry("create", Written::create),
        Map.entry("write", Written::write),
        Map.entry("describe", Written::describe),
        Map.entry("served", Served::served),
        Map.entry("groups", Served::groups),
        Map.entry("lag", Served::lag),
        Map.entry("settings", Served::settings),
        Map.entry("deleteRecords", Written::deleteRecords),
        Map.entry("configure", Written::configure),
        Map.entry("consume", Consumed::consume),
        Map.entry("elect", Elections::elect),
        Map.entry("look", Looked::look),
        Map.entry("move", Looked::move),
        Map.entry("logDirectories", LogDirectories::opened),
        Map.entry("topicId", LogDirectories::topicId));

    private Cluster() {
    }

    /** One thing that can be asked for. */
    interface Operation {
        /** Fill in the answer. */
        void run(JsonNode request, ObjectNode answer) throws Exception;
    }

    /** Runs until the input ends. */
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            System.out.flush();
        }
    }

    private static ObjectNode answer(JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            operation(request.path("op").asText()).run(request, answer);
        } catch (Exception | LinkageError thrown) {
            answer.put("error", thrown.getClass().getSimpleName());
            answer.put("message", String.valueOf(thrown.getMessage()));
        }
        return answer;
    }

    private static Operation operation(String name) {
        return Stream.of(OPERATIONS, Coordinators.OPERATIONS, Shares.OPERATIONS)
            .filter(operations -> operations.containsKey(name)).findFirst().orElseThrow().get(name);
    }
}
