package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Answers requests with Kafka's own classes: one JSON object per line in, one per line out.
 *
 * <p>A request names its operation in {@code op}. Bytes are hex. What an operation throws comes back as
 * {@code error}, the name of the class, and {@code message}.
 */
final class Answers {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Answers() {
    }

    /** One thing that can be asked for. */
    interface Operation {
        /** Fill in the answer. */
        void run(JsonNode request, ObjectNode answer) throws Exception;
    }

    /** Answers until the input ends, then ends the process. */
    static void give(Map<String, Operation> operations, PrintStream answers) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(answer(operations, JSON.readTree(line))));
            answers.flush();
        }
        System.exit(0);
    }

    private static ObjectNode answer(Map<String, Operation> operations, JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            operations.get(request.path("op").asText()).run(request, answer);
        } catch (Exception | LinkageError | AssertionError | OutOfMemoryError thrown) {
            answer.put("error", thrown.getClass().getSimpleName());
            answer.put("message", String.valueOf(thrown.getMessage()));
        }
        return answer;
    }
}
