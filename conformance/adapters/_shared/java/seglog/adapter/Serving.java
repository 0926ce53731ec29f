package seglog.adapter;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/** The line protocol: one JSON object for each request, whatever Kafka's classes throw. */
final class Serving {
    /** The bytes of a case are one string, however long. */
    static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
        .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build()).build());
    static final HexFormat HEX = HexFormat.of();

    private Serving() {
    }

    /** One operation: fills in the answer. */
    interface Operation {
        void run(JsonNode request, ObjectNode answer) throws Exception;
    }

    /** There is no way to ask Kafka's classes for this. */
    static final class Skip extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Skip(String reason) {
            super(reason);
        }
    }

    /** Answer requests for one of Kafka's libraries until there are no more; its features are JSON. */
    static void run(String name, String features, Map<String, Operation> operations) throws IOException {
        ObjectNode hello = JSON.createObjectNode();
        hello.putObject("implementation").put("name", name).put("version", AppInfoParser.getVersion())
            .put("implements", AppInfoParser.getVersion()).put("language", "Java").put("homepage", "https://kafka.apache.org")
            .put("issues", "https://issues.apache.org/jira/projects/KAFKA");
        hello.set("features", JSON.readTree(features));
        PrintStream answers = System.out;
        System.setOut(System.err);
        operations.keySet().stream().sorted().forEach(hello.putArray("ops")::add);
        hello.put("ok", true).put("protocol", 1);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = JSON.readTree(line);
            String op = request.path("op").asText();
            if (op.equals("stop")) {
                break;
            }
            ObjectNode answer = op.equals("hello") ? hello.deepCopy() : answer(operations.get(op), request);
            answers.println(JSON.writeValueAsString(answer.set("seq", request.get("seq"))));
            answers.flush();
        }
        System.exit(0);
    }

    private static ObjectNode answer(Operation operation, JsonNode request) {
        ObjectNode answer = JSON.createObjectNode();
        if (operation == null) {
            answer.putObject("skip").put("feature", "op:" + request.path("op").asText());
            return answer;
        }
        try {
            operation.run(request, answer.put("ok", true));
        } catch (Skip skip) {
            answer.removeAll().putObject("skip").put("reason", skip.getMessage());
        } catch (Exception | Error thrown) {
            if (!isFromLibrary(thrown)) {
                answer.removeAll().putObject("error").put("message", thrown + " at " + Arrays.toString(thrown.getStackTrace()));
            } else {
                reject(answer, thrown);
            }
        }
        return answer;
    }

    /** Whether a class of Kafka has thrown it, or was called when it was thrown; some of them have no stack. */
    private static boolean isFromLibrary(Throwable thrown) {
        if (thrown.getClass().getName().startsWith("org.apache.kafka")) {
            return true;
        }
        for (StackTraceElement frame : thrown.getStackTrace()) {
            if (frame.getClassName().startsWith("org.apache.kafka") || frame.getClassName().startsWith("kafka.")) {
                return true;
            }
        }
        return thrown.getCause() != null && isFromLibrary(thrown.getCause());
    }

    /** Turn an answer into a refusal; its class is a guess from the words, and informs only. */
    static void reject(ObjectNode answer, Throwable thrown) {
        String text = thrown + (thrown.getCause() == null ? "" : ": " + thrown.getCause());
        answer.remove(java.util.List.of("accept", "object"));
        answer.put("ok", false).putObject("reject").put("class", kind(text)).put("message", text)
            .put("error", thrown.getClass().getName());
    }

    private static String kind(String text) {
        String[][] kinds = {
            {"crc", "crc"}, {"checksum", "crc"}, {"ompress", "compression"}, {"arint", "varint"}, {"magic", "magic"},
            {"number of records", "count"}, {"record count", "count"}, {"size", "length"}, {"length", "length"},
            {"offset", "offset"}, {"ndex", "index"}};
        for (String[] known : kinds) {
            if (text.contains(known[0])) {
                return known[1];
            }
        }
        return "other";
    }

    static byte[] unhexed(JsonNode hex) {
        return hex == null || hex.isNull() || hex.isMissingNode() ? null : HEX.parseHex(hex.asText());
    }

    static String hexed(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }

    static String hexed(byte[] bytes) {
        return bytes == null ? null : HEX.formatHex(bytes);
    }
}
