package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** kafka-clients: {@code MemoryRecords}, asked as the Java consumer does. */
public final class Main {
    private static final String FEATURES = """
        {"magic": [0, 1, 2], "codec": ["none", "gzip", "snappy", "lz4", "zstd"], "crc": true, "control": "surfaced",
         "headers": "ordered", "batchMeta": true, "bytesKeys": false, "partialTail": true, "policy": ["read"],
         "errors": ["org.apache.kafka.*", "kafka.*", "org.xerial.snappy.*", "java.io.IOException"],
         "recordFields": ["offset", "timestamp", "key", "value", "headers", "sequence", "control", "coordinatorEpoch"]}
        """;

    private Main() {
    }

    public static void main(String[] arguments) throws IOException {
        Serving.run("kafka-clients", FEATURES,
            Map.of("decode", Main::decode, "encode", Encoding::encode, "validate", Main::validate));
    }

    private static void decode(JsonNode request, ObjectNode answer) {
        ByteBuffer bytes = ByteBuffer.wrap(Serving.unhexed(request.get("data")));
        boolean checksums = request.path("options").path("crc").asBoolean(true);
        Summary summary = request.path("options").path("summary").asBoolean(false) ? new Summary() : null;
        Batches.decode(MemoryRecords.readableRecords(bytes.duplicate()).batches(), bytes, checksums, summary, answer);
    }

    private static void validate(JsonNode request, ObjectNode answer) {
        if (!request.path("policy").asText().equals("read")) {
            throw new Serving.Skip("the client has no policy for appends");
        }
        ObjectNode found = Serving.JSON.createObjectNode();
        decode(request, found);
        if (found.has("reject")) {
            answer.put("ok", false).set("reject", found.get("reject"));
        } else if (found.hasNonNull("tail")) {
            answer.put("ok", false).putObject("reject").put("class", "length").put("message", "a partial batch");
        } else {
            answer.put("accept", true);
        }
    }
}
