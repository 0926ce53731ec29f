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
public final class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();

    private static final Map<String, Operation> OPERATIONS = Map.ofEntries(
        Map.entry("index", Segments::index),
        Map.entry("recover", Segments::recover),
        Map.entry("lookup", Segments::lookup),
        Map.entry("write", Logs::write),
        Map.entry("load", Logs::load),
        Map.entry("clean", Logs::clean),
        Map.entry("read", Reads::read),
        Map.entry("dump", Dumps::dump),
        Map.entry("create", Clients::create),
        Map.entry("consume", Clients::consume),
        Map.entry("decode", Memory::decode),
        Map.entry("tier", Tier::replay));

    private Oracle() {
    }

    /** One thing that can be asked for. */
    interface Operation {
        /** Fill in the answer. */
        void run(JsonNode request, ObjectNode answer) throws Exception;
    }

    /** Runs until the input ends. */
    public static void main(String[] arguments) throws IOException {
        PrintStream answers = System.out;
        System.setOut(Dumps.OUTPUT);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            answers.flush();
        }
        System.exit(0);
    }

    private static ObjectNode answer(JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            OPERATIONS.get(request.path("op").asText()).run(request, answer);
        } catch (Exception | LinkageError | AssertionError | OutOfMemoryError thrown) {
            answer.put("error", thrown.getClass().getSimpleName());
            answer.put("message", String.valueOf(thrown.getMessage()));
        }
        return answer;
    }
}
