package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import kafka.tools.DumpLogSegments;

/** Kafka's own tool for looking into log directories. */
final class Dumps {
    private static final ByteArrayOutputStream BYTES = new ByteArrayOutputStream();

    /** Stands in for the standard output, where the tool prints. */
    static final PrintStream OUTPUT = new PrintStream(BYTES, true, StandardCharsets.UTF_8);

    private Dumps() {
    }

    /** Run the tool with {@code arguments}; answer with all that it prints, complaints included. */
    static void dump(JsonNode request, ObjectNode answer) {
        List<String> arguments = new ArrayList<>();
        request.path("arguments").forEach(argument -> arguments.add(argument.asText()));
        BYTES.reset();
        PrintStream errors = System.err;
        System.setErr(OUTPUT);
        try {
            DumpLogSegments.main(arguments.toArray(String[]::new));
        } finally {
            System.setErr(errors);
        }
        answer.put("output", BYTES.toString(StandardCharsets.UTF_8));
    }
}
