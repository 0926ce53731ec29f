package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Apache Kafka: a {@code KafkaConsumer} that is assigned a partition and polls it to its end. */
public final class Consuming {
    private static final Duration WAIT = Duration.ofMillis(20);
    private static final Duration WAIT_AFTER = Duration.ofSeconds(1);
    private static final int MOST_ERRORS = 3;
    private static final String MOST_SIZE = String.valueOf(1 << 26);
    private static final String FEATURES = """
        {"magic": [0, 1, 2], "codec": ["none", "gzip", "snappy", "lz4", "zstd"], "crc": true, "control": "hidden",
         "headers": "ordered", "batchMeta": false, "bytesKeys": false, "partialTail": false,
         "afterError": true, "errors": ["org.apache.kafka.*", "org.xerial.snappy.*"]}
        """;

    private Consuming() {
    }

    public static void main(String[] arguments) throws IOException {
        Serving.run("Apache Kafka, KafkaConsumer and KafkaProducer", FEATURES,
            Map.of("decode", Consuming::decode, "encode", Producing::encode));
    }

    private static void decode(JsonNode request, ObjectNode answer) {
        JsonNode place = request.get("place");
        TopicPartition partition = new TopicPartition(place.get("topic").asText(), 0);
        Path ended = Path.of(place.get("ended").asText());
        ArrayNode records = answer.putArray("batches").addObject().putArray("records");
        try (var consumer = consumer(place.get("bootstrap").asText(), request.path("options").path("crc").asBoolean(true))) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, 0);
            try {
                consume(consumer, ended, records);
            } catch (KafkaException error) {
                if (request.path("options").path("afterError").asBoolean()) {
                    ObjectNode after = answer.putObject("after");
                    goOn(consumer, ended, after.putArray("records"));
                    after.put("position", String.valueOf(consumer.position(partition)));
                }
                throw error;
            }
        }
    }

    private static void consume(KafkaConsumer<byte[], byte[]> consumer, Path ended, ArrayNode records) {
        boolean isOver = false;
        while (!isOver) {
            boolean isEnded = Files.exists(ended);
            ConsumerRecords<byte[], byte[]> found = consumer.poll(WAIT);
            found.forEach(one -> records.add(record(one)));
            isOver = isEnded && found.isEmpty();
        }
    }

    /** Polls a consumer after its first error, until there are more errors, or nothing comes. */
    private static void goOn(KafkaConsumer<byte[], byte[]> consumer, Path ended, ArrayNode records) {
        long end = System.nanoTime() + WAIT_AFTER.toNanos();
        int errors = 0;
        boolean isOver = false;
        while (!isOver && errors < MOST_ERRORS && System.nanoTime() < end) {
            boolean isEnded = Files.exists(ended);
            try {
                ConsumerRecords<byte[], byte[]> found = consumer.poll(WAIT);
                found.forEach(one -> records.add(record(one)));
                isOver = isEnded && found.isEmpty();
            } catch (KafkaException error) {
                errors++;
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String address, boolean checksums) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("auto.offset.reset", "none");
        settings.put("enable.auto.commit", "false");
        settings.put("check.crcs", String.valueOf(checksums));
        settings.put("fetch.max.wait.ms", "50");
        settings.put("fetch.max.bytes", MOST_SIZE);
        settings.put("max.partition.fetch.bytes", MOST_SIZE);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static ObjectNode record(ConsumerRecord<byte[], byte[]> one) {
        ObjectNode line = Serving.JSON.createObjectNode().put("offset", String.valueOf(one.offset()))
            .put("timestamp", String.valueOf(one.timestamp())).put("key", Serving.hexed(one.key()))
            .put("value", Serving.hexed(one.value()));
        ArrayNode headers = line.putArray("headers");
        one.headers().forEach(header -> headers.addArray()
            .add(Serving.HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8))).add(Serving.hexed(header.value())));
        return line;
    }
}
