package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Everything that clients get of partition 0 of some topics, record by record. */
final class Looked {
    private static final int STABLE_S = 4;
    private static final List<String> ISOLATIONS = List.of("read_uncommitted", "read_committed");

    private Looked() {
    }

    /**
     * Tells what consumers get of {@code topics}, and with {@code appends} at which offset the next record then is.
     *
     * <p>Under each isolation level, a topic has {@code begin}, {@code end} and {@code records}: offset, timestamp and
     * value of each; and an {@code error} where they end, after which nothing more is asked of the topic. {@code times}
     * has for each timestamp the offset that is found by it, -1 for none. Except for the topic {@code open}, it waits
     * some seconds until all transactions end. {@code later} is the first offset a while after the rest.
     */
    static void look(JsonNode request, ObjectNode answer) {
        int patience = request.path("seconds").asInt();
        for (JsonNode topic : request.get("topics")) {
            TopicPartition partition = new TopicPartition(topic.asText(), 0);
            ObjectNode found = answer.putObject(topic.asText());
            for (String isolation : ISOLATIONS) {
                ObjectNode own = found.putObject(isolation);
                try (KafkaConsumer<byte[], byte[]> consumer = consumer(request, isolation)) {
                    // 0 under the first isolation level, and -1 if some transaction stays open
                    long awaited = topic.asText().equals(request.path("open").asText())
                        ? -1 : found.path(ISOLATIONS.get(0)).path("end").asLong();
                    read(consumer, partition, awaited, patience, own);
                    if (isolation.equals(ISOLATIONS.get(0))) {
                        times(consumer, partition, own.withArray("records"), found.putArray("times"));
                    }
                } catch (RuntimeException thrown) {
                    own.put("error", thrown.getClass().getSimpleName() + ": " + thrown.getMessage());
                    break;
                }
            }
        }
        if (request.path("appends").asBoolean()) {
            append(request, answer);
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(JsonNode request, String isolation) {
        Map<String, Object> settings = Served.common(request);
        settings.put("default.api.timeout.ms", request.path("seconds").asInt() * 1000);
        settings.put("isolation.level", isolation);
        settings.put("allow.auto.create.topics", false);
        settings.put("fetch.max.wait.ms", 50);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return new KafkaConsumer<>(settings);
    }

    private static void read(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, long awaited, int patience, ObjectNode own) {
        ArrayNode rows = own.putArray("records");
        consumer.assign(List.of(partition));
        own.put("begin", consumer.beginningOffsets(Set.of(partition)).get(partition));
        long stable = System.nanoTime() + TimeUnit.SECONDS.toNanos(STABLE_S);
        long end = consumer.endOffsets(Set.of(partition)).get(partition);
        while (end < awaited && System.nanoTime() < stable) {
            pause(200);
            end = consumer.endOffsets(Set.of(partition)).get(partition);
        }
        own.put("end", end);
        consumer.seekToBeginning(List.of(partition));
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(patience);
        while (consumer.position(partition) < end) {
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("position " + consumer.position(partition) + " of " + end);
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                String value = record.value() == null ? null : new String(record.value(), StandardCharsets.UTF_8);
                rows.addArray().add(record.offset()).add(record.timestamp()).add(value);
            }
        }
    }

    private static void times(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, ArrayNode rows, ArrayNode times) {
        Set<Long> asked = new TreeSet<>();
        rows.forEach(row -> asked.add(row.get(1).asLong()));
        for (long time : asked) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, time)).get(partition);
            times.addArray().add(time).add(found == null ? -1 : found.offset());
        }
    }

    private static void append(JsonNode request, ObjectNode answer) {
        Map<String, Object> settings = Served.common(request);
        settings.remove("default.api.timeout.ms");
        settings.put("delivery.timeout.ms", request.path("seconds").asInt() * 1000);
        settings.put("request.timeout.ms", request.path("seconds").asInt() * 1000 - 1000);
        settings.put("max.block.ms", request.path("seconds").asInt() * 1000);
        settings.put("linger.ms", 0);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (JsonNode topic : request.get("topics")) {
                ObjectNode found = answer.withObject("/" + topic.asText());
                if (found.findValue("error") != null) {
                    continue;
                }
                byte[] more = "0".getBytes(StandardCharsets.UTF_8);
                try {
                    found.put("next", producer.send(new ProducerRecord<>(topic.asText(), 0, more, more)).get().offset());
                } catch (Exception thrown) {
                    found.put("refused", String.valueOf(thrown.getMessage()));
                }
            }
        }
        pause(request.path("pauseMs").asLong());
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(request, ISOLATIONS.get(0))) {
            for (JsonNode topic : request.get("topics")) {
                TopicPartition partition = new TopicPartition(topic.asText(), 0);
                if (answer.path(topic.asText()).has("next")) {
                    answer.withObject("/" + topic.asText())
                        .put("later", consumer.beginningOffsets(Set.of(partition)).get(partition));
                }
            }
        }
    }

    private static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException thrown) {
            Thread.currentThread().interrupt();
        }
    }

    /** Moves partition 0 of a {@code topic} to the log {@code directory} of broker {@code node}. */
    static void move(JsonNode request, ObjectNode answer) throws Exception {
        try (Admin admin = Admin.create(Served.common(request))) {
            TopicPartitionReplica replica =
                new TopicPartitionReplica(request.path("topic").asText(), 0, request.path("node").asInt());
            Filled.done(admin.alterReplicaLogDirs(Map.of(replica, request.path("directory").asText())).all());
        }
    }
}
