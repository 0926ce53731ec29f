package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DeletedRecords;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes topics with replicas, writes to them, and tells who leads them. */
final class Written {
    private static final int LIMIT_S = 60;
    private static final int BATCH_SIZE = 500;

    private Written() {
    }

    /** Creates {@code topics}: partitions, replication and config by name. */
    static void create(JsonNode request, ObjectNode answer) throws Exception {
        Collection<NewTopic> created = new ArrayList<>();
        for (Map.Entry<String, JsonNode> topic : request.get("topics").properties()) {
            Map<String, String> config = new HashMap<>();
            topic.getValue().path("config").properties()
                .forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
            int partitions = topic.getValue().path("partitions").asInt();
            short replication = (short) topic.getValue().path("replication").asInt();
            created.add(new NewTopic(topic.getKey(), partitions, replication).configs(config));
        }
        try (Admin admin = Admin.create(Served.common(request))) {
            Filled.done(admin.createTopics(created).all());
        }
    }

    /**
     * Writes {@code records} to each of the {@code partitions} of a {@code topic}, with the {@code acks} given.
     *
     * <p>The keys of records repeat after {@code keys} of them; without it, they have none.
     */
    static void write(JsonNode request, ObjectNode answer) throws Exception {
        Map<String, Object> settings = Served.common(request);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.remove("default.api.timeout.ms");
        settings.put("acks", request.path("acks").asText("all"));
        settings.put("enable.idempotence", !request.has("acks"));
        settings.put("batch.size", BATCH_SIZE);
        String text = request.path("text").asText("value");
        List<Future<?>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (int partition = 0; partition < request.path("partitions").asInt(); partition++) {
                for (int number = 0; number < request.path("records").asInt(); number++) {
                    byte[] value = (text + " " + number).getBytes(StandardCharsets.UTF_8);
                    byte[] key = request.has("keys") ? new byte[] {(byte) (number % request.get("keys").asInt())} : null;
                    sent.add(producer.send(new ProducerRecord<>(request.path("topic").asText(), partition, key, value)));
                }
            }
        }
        for (Future<?> each : sent) {
            Filled.done(each);
        }
    }

    /** Tells the {@code leader} and the {@code isr} of each partition of {@code topics}; a leader of -1 is none. */
    static void describe(JsonNode request, ObjectNode answer) throws Exception {
        Collection<String> names = new ArrayList<>();
        request.get("topics").forEach(topic -> names.add(topic.asText()));
        try (Admin admin = Admin.create(Served.common(request))) {
            admin.describeTopics(names).allTopicNames().get(LIMIT_S, TimeUnit.SECONDS).forEach((name, topic) -> {
                ArrayNode rows = answer.putArray(name);
                for (TopicPartitionInfo partition : topic.partitions()) {
                    ObjectNode row = rows.addObject();
                    row.put("leader", partition.leader() == null ? -1 : partition.leader().id());
                    ArrayNode isr = row.putArray("isr");
                    partition.isr().stream().map(node -> node.id()).sorted().forEach(isr::add);
                }
            });
        }
    }

    /** Deletes the records of a {@code partition} of a {@code topic} below an {@code offset}; -1 is the log end. */
    static void deleteRecords(JsonNode request, ObjectNode answer) throws Exception {
        TopicPartition partition = new TopicPartition(request.path("topic").asText(), request.path("partition").asInt());
        RecordsToDelete deleted = RecordsToDelete.beforeOffset(request.path("offset").asLong());
        try (Admin admin = Admin.create(Served.common(request))) {
            DeletedRecords done = admin.deleteRecords(Map.of(partition, deleted)).lowWatermarks().get(partition)
                .get(LIMIT_S, TimeUnit.SECONDS);
            answer.put("begin", done.lowWatermark());
        }
    }

    /** Sets the {@code settings} of a {@code topic}. */
    static void configure(JsonNode request, ObjectNode answer) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, request.path("topic").asText());
        Collection<AlterConfigOp> changes = new ArrayList<>();
        request.get("settings").properties().forEach(setting -> changes.add(new AlterConfigOp(
            new ConfigEntry(setting.getKey(), setting.getValue().asText()), AlterConfigOp.OpType.SET)));
        try (Admin admin = Admin.create(Served.common(request))) {
            Filled.done(admin.incrementalAlterConfigs(Map.of(topic, changes)).all());
        }
    }
}
