package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Consumes as a member of a group. */
final class Consumed {
    private static final int LIMIT_S = 60;
    private static final int LEAST_S = 3;

    private Consumed() {
    }

    /**
     * Reads {@code topics} to their ends as the only member of a {@code group}, and commits the positions.
     *
     * <p>{@code reset} says what a partition without a position does: {@code earliest}, {@code latest} or {@code none}.
     * The consumer polls for some seconds in any case, in which it compares its positions with the leader epochs of the
     * broker. The answer has by partition the position that the group had ({@code from}), the offset of the
     * {@code first} record, -1 for none, and the position after the last one ({@code to}).
     */
    static void consume(JsonNode request, ObjectNode answer) throws Exception {
        Map<String, Object> settings = Served.common(request);
        settings.put("group.id", request.path("group").asText());
        settings.put("auto.offset.reset", request.path("reset").asText());
        settings.put("enable.auto.commit", false);
        settings.put("allow.auto.create.topics", false);
        settings.put("fetch.max.wait.ms", 50);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        List<String> topics = new ArrayList<>();
        request.get("topics").forEach(topic -> topics.add(topic.asText()));
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        Map<TopicPartition, Long> from = new HashMap<>();
        Map<TopicPartition, Long> first = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(topics);
            long least = Long.MAX_VALUE;
            while (System.nanoTime() < least || !isAtEnd(consumer)) {
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException(positions(consumer) + " of " + consumer.endOffsets(consumer.assignment()));
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    first.putIfAbsent(new TopicPartition(record.topic(), record.partition()), record.offset());
                }
                if (least == Long.MAX_VALUE && !consumer.assignment().isEmpty()) {
                    least = System.nanoTime() + TimeUnit.SECONDS.toNanos(LEAST_S);
                    consumer.committed(consumer.assignment()).forEach((partition, position) ->
                        from.put(partition, position == null ? -1L : position.offset()));
                }
            }
            for (Map.Entry<TopicPartition, Long> position : positions(consumer).entrySet()) {
                TopicPartition partition = position.getKey();
                answer.putObject(partition.toString())
                    .put("from", from.getOrDefault(partition, -1L))
                    .put("first", first.getOrDefault(partition, -1L))
                    .put("to", position.getValue());
            }
            consumer.commitSync();
        }
    }

    private static boolean isAtEnd(KafkaConsumer<byte[], byte[]> consumer) {
        Set<TopicPartition> assigned = consumer.assignment();
        Map<TopicPartition, Long> ends = consumer.endOffsets(assigned);
        return !assigned.isEmpty() && assigned.stream().allMatch(each -> consumer.position(each) >= ends.get(each));
    }

    private static Map<TopicPartition, Long> positions(KafkaConsumer<byte[], byte[]> consumer) {
        Map<TopicPartition, Long> positions = new HashMap<>();
        consumer.assignment().forEach(each -> positions.put(each, consumer.position(each)));
        return positions;
    }
}
