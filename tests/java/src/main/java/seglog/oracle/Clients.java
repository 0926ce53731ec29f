package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A stock client of a broker that runs. */
final class Clients {
    private static final int LIMIT_S = 60;

    private Clients() {
    }

    /** Create the {@code topics}, each with its number of {@code partitions} and its {@code config}. */
    static void create(JsonNode request, ObjectNode answer) throws Exception {
        try (Admin admin = Admin.create(common(request))) {
            List<NewTopic> topics = new ArrayList<>();
            request.path("topics").properties().forEach(topic -> {
                Map<String, String> config = new HashMap<>();
                topic.getValue().path("config").properties()
                    .forEach(setting -> config.put(setting.getKey(), setting.getValue().asText()));
                int partitions = topic.getValue().path("partitions").asInt(1);
                topics.add(new NewTopic(topic.getKey(), partitions, (short) 1).configs(config));
            });
            admin.createTopics(topics).all().get(LIMIT_S, TimeUnit.SECONDS);
            answer.put("created", topics.size());
        }
    }

    /** Read a {@code partition} of a {@code topic} from its start to its end with the {@code isolation} given. */
    static void consume(JsonNode request, ObjectNode answer) {
        Map<String, Object> settings = common(request);
        settings.put("isolation.level", request.path("isolation").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        TopicPartition partition = new TopicPartition(
            request.path("topic").asText(), request.path("partition").asInt());
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            answer.put("startOffset", consumer.beginningOffsets(Set.of(partition)).get(partition));
            long end = consumer.endOffsets(Set.of(partition)).get(partition);
            answer.put("endOffset", end);
            ArrayNode records = answer.putArray("records");
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException("position " + consumer.position(partition) + " of " + end);
                }
                consumer.poll(Duration.ofMillis(200)).forEach(record -> put(record, records.addObject()));
            }
        }
    }

    private static void put(ConsumerRecord<byte[], byte[]> record, ObjectNode line) {
        line.put("offset", record.offset()).put("timestamp", record.timestamp())
            .put("timestampType", record.timestampType().name).put("key", record.key()).put("value", record.value());
        record.leaderEpoch().ifPresent(epoch -> line.put("leaderEpoch", epoch));
        ArrayNode headers = line.putArray("headers");
        record.headers().forEach(header -> headers.addArray().add(header.key()).add(header.value()));
    }

    private static Map<String, Object> common(JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.path("bootstrap").asText());
        settings.put("default.api.timeout.ms", LIMIT_S * 1000);
        return settings;
    }
}
