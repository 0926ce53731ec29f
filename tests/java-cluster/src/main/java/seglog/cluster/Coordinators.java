package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeTransactionsResult;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Which partition of its topic a coordinator stores a name in, and what brokers that run keep there. */
final class Coordinators {
    private static final int LIMIT_S = 60;
    private static final String KEY = "org.apache.kafka.server.share.SharePartitionKey";

    static final Map<String, Cluster.Operation> OPERATIONS = Map.of(
        "partitions", Coordinators::partitions,
        "commit", Coordinators::commit,
        "transactions", Coordinators::transactions,
        "transact", Coordinators::transact,
        "transactionStates", Coordinators::transactionStates);

    private Coordinators() {
    }

    /**
     * Calls {@code partitionFor} of the {@code class} given for each of the {@code names} and each of the {@code counts}.
     *
     * <p>An instance is made without its constructor, and gets the number of partitions in the field that the method
     * reads: the method is that of the release, the coordinator around it does not run. A name is a text, or
     * {@code [group, topic id, partition]} of a share partition; for those {@code keys} has the text that is hashed.
     */
    static void partitions(JsonNode request, ObjectNode answer) throws Exception {
        Class<?> coordinator = Class.forName(request.path("class").asText());
        Object instance = blank(coordinator);
        ArrayNode rows = answer.putArray("rows");
        ArrayNode keys = answer.putArray("keys");
        for (JsonNode name : request.get("names")) {
            ArrayNode row = rows.addArray();
            Object key = name.isTextual() ? name.asText() : shareKey(name);
            Method method = coordinator.getMethod("partitionFor", key.getClass());
            for (JsonNode count : request.get("counts")) {
                set(instance, count.asInt());
                row.add((Integer) method.invoke(instance, key));
            }
            if (!name.isTextual()) {
                keys.add((String) key.getClass().getMethod("asCoordinatorKey").invoke(key));
            }
        }
    }

    private static Object blank(Class<?> type) throws Exception {
        Field door = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        door.setAccessible(true);
        Object unsafe = door.get(null);
        return unsafe.getClass().getMethod("allocateInstance", Class.class).invoke(unsafe, type);
    }

    private static void set(Object instance, int count) throws Exception {
        for (Field field : instance.getClass().getDeclaredFields()) {
            field.setAccessible(true);
            if (field.getType() == int.class
                    && (field.getName().equals("numPartitions") || field.getName().endsWith("TopicPartitionCount"))) {
                field.setInt(instance, count);
            } else if (field.getName().equals("isActive")) {
                field.set(instance, new AtomicBoolean(true));
            }
        }
    }

    private static Object shareKey(JsonNode name) throws Exception {
        return Class.forName(KEY).getMethod("getInstance", String.class, Uuid.class, int.class).invoke(
            null, name.get(0).asText(), Uuid.fromString(name.get(1).asText()), name.get(2).asInt());
    }

    /** Commits, for each of the {@code groups}, positions in the first partitions of a {@code topic}. */
    static void commit(JsonNode request, ObjectNode answer) throws Exception {
        try (Admin admin = Admin.create(Served.common(request))) {
            for (Map.Entry<String, JsonNode> group : request.get("groups").properties()) {
                Filled.done(admin.alterConsumerGroupOffsets(
                    group.getKey(), offsets(request.path("topic").asText(), group.getValue())).all());
            }
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(String topic, JsonNode positions) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode position : positions) {
            offsets.put(new TopicPartition(topic, offsets.size()), new OffsetAndMetadata(position.asLong(), ""));
        }
        return offsets;
    }

    /** Commits, for each transactional id in {@code ids}, one record in a {@code topic} and a position of its group. */
    static void transactions(JsonNode request, ObjectNode answer) throws Exception {
        TopicPartition partition = new TopicPartition(request.path("topic").asText(), 0);
        for (Map.Entry<String, JsonNode> id : request.get("ids").properties()) {
            try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(transactional(request, id.getKey()))) {
                producer.initTransactions();
                producer.beginTransaction();
                byte[] value = id.getKey().getBytes(StandardCharsets.UTF_8);
                Filled.done(producer.send(new ProducerRecord<>(partition.topic(), partition.partition(), null, value)));
                producer.sendOffsetsToTransaction(
                    Map.of(partition, new OffsetAndMetadata(1)), new ConsumerGroupMetadata(id.getValue().asText()));
                producer.commitTransaction();
            }
        }
    }

    private static Map<String, Object> transactional(JsonNode request, String id) {
        Map<String, Object> settings = Served.common(request);
        settings.remove("default.api.timeout.ms");
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        settings.put("transactional.id", id);
        return settings;
    }

    /**
     * Has a new producer with a transactional {@code id} write two records to a {@code topic} in each of the {@code
     * transactions}, and end it: {@code commit}, {@code abort}, or {@code open}, after which the producer is left alone.
     * Values are how it ends, after a {@code text}.
     */
    static void transact(JsonNode request, ObjectNode answer) throws Exception {
        Map<String, Object> settings = transactional(request, request.path("id").asText());
        settings.put("linger.ms", LIMIT_S); // both records in one batch
        if (request.has("timeoutMs")) {
            settings.put("transaction.timeout.ms", request.path("timeoutMs").asInt());
        }
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        producer.initTransactions();
        for (JsonNode end : request.get("transactions")) {
            producer.beginTransaction();
            byte[] value = (request.path("text").asText() + end.asText()).getBytes(StandardCharsets.UTF_8);
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(request.path("topic").asText(), 0, null, value);
            List<Future<RecordMetadata>> sent = List.of(producer.send(record), producer.send(record));
            producer.flush();
            for (Future<RecordMetadata> each : sent) {
                Filled.done(each);
            }
            switch (end.asText()) {
                case "commit" -> producer.commitTransaction();
                case "abort" -> producer.abortTransaction();
                default -> {
                    return;
                }
            }
        }
        producer.close();
    }

    /** Tells the producer id, the epoch and the state of each of the transactional {@code ids}; null if it is unknown. */
    static void transactionStates(JsonNode request, ObjectNode answer) throws Exception {
        List<String> ids = new ArrayList<>();
        request.get("ids").forEach(id -> ids.add(id.asText()));
        try (Admin admin = Admin.create(Served.common(request))) {
            DescribeTransactionsResult result = admin.describeTransactions(ids);
            for (String id : ids) {
                try {
                    TransactionDescription described = result.description(id).get(LIMIT_S, TimeUnit.SECONDS);
                    answer.putArray(id)
                        .add(described.producerId())
                        .add(described.producerEpoch())
                        .add(described.state().toString());
                } catch (ExecutionException unknown) {
                    answer.putNull(id);
                }
            }
        }
    }
}
