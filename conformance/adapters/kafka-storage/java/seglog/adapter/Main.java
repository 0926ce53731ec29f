package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.Map;
import org.apache.kafka.common.record.internal.FileRecords;

/** kafka-storage: {@code FileRecords}, {@code LogSegment} and {@code UnifiedLog}, as a broker uses them. */
public final class Main {
    private static final String FEATURES = """
        {"magic": [0, 1, 2], "codec": ["none", "gzip", "snappy", "lz4", "zstd"], "crc": true, "control": "surfaced",
         "headers": "ordered", "batchMeta": true, "bytesKeys": false, "partialTail": true, "policy": ["read", "append", "replicate"],
         "parse": true, "decide": [], "provesIndexes": false, "trustIndexes": true, "specialTimestamps": true,
         "earliestLocal": true, "logStartOffset": true, "readAll": true, "abortedLookup": true, "newestSnapshot": true,
         "appended": ["data", "firstOffset", "lastOffset", "maxTimestamp", "batches"], "logState": true, "leaderEpochs": true, "tiered": true,
         "recovery": ["like-brokers"], "live": ["checkpoint", "duplicates", "retain", "roll"],
         "errors": ["org.apache.kafka.*", "kafka.*", "org.xerial.snappy.*", "java.io.IOException"],
         "recordFields": ["offset", "timestamp", "key", "value", "headers", "sequence", "control", "coordinatorEpoch"]}
        """;

    private Main() {
    }

    public static void main(String[] arguments) throws IOException {
        Serving.run("kafka-storage", FEATURES, Map.ofEntries(
            Map.entry("decode", Main::decode), Map.entry("validate", Main::validate), Map.entry("index", Partitions::index),
            Map.entry("lookup", Partitions::lookup), Map.entry("read", Partitions::read),
            Map.entry("recover", Partitions::recover), Map.entry("truncate", Partitions::truncate),
            Map.entry("parse", SmallFiles::parse), Map.entry("write", Lives::write), Map.entry("retain", Lives::retain),
            Map.entry("compact", Lives::compact), Map.entry("live", Live::answer)));
    }

    private static void decode(JsonNode request, ObjectNode answer) throws IOException {
        byte[] data = Serving.unhexed(request.get("data"));
        boolean checksums = request.path("options").path("crc").asBoolean(true);
        File file = File.createTempFile("adapter", ".log");
        try {
            Files.write(file.toPath(), data);
            try (FileRecords records = FileRecords.open(file, false)) {
                Batches.decode(records.batches(), ByteBuffer.wrap(data), checksums, answer);
            }
        } finally {
            Files.delete(file.toPath());
        }
    }

    private static void validate(JsonNode request, ObjectNode answer) throws Exception {
        if (!request.path("policy").asText().equals("read")) {
            Appends.validate(request, answer);
            return;
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
