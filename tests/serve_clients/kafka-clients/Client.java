// Tasks are told as JSON on standard input, and answered as JSON on standard output.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

final class Client {
    private static final Duration WAIT = Duration.ofMillis(200);

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode told = mapper.readTree(System.in);
        String address = "127.0.0.1:" + told.get("port").asInt();
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Object>> pending = new ArrayList<>();
        for (JsonNode task : told.get("tasks")) pending.add(pool.submit(() -> carriedOut(address, task)));
        List<Object> answers = new ArrayList<>();
        for (Future<Object> each : pending) {
            try {
                answers.add(each.get());
            } catch (ExecutionException error) {
                answers.add(String.valueOf(error.getCause()));
            }
        }
        pool.shutdown();
        mapper.writeValue(System.out, answers);
    }

    private static Object carriedOut(String address, JsonNode task) throws Exception {
        switch (task.get("kind").asText()) {
            case "records": return records(address, task);
            case "lookups": return lookups(address, task);
            case "group": return group(address, task);
            case "steady": return steady(address, task);
            default: return produce(address, task);
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String address, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("fetch.max.wait.ms", "100");
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Object records(String address, JsonNode task) {
        TopicPartition partition = new TopicPartition(task.get("topic").asText(), 0);
        List<Object> found = new ArrayList<>();
        try (var connected = consumer(address, Map.of("isolation.level", task.get("isolation").asText()))) {
            connected.assign(List.of(partition));
            connected.seekToBeginning(List.of(partition));
            while (connected.position(partition) < task.get("end").asLong()) {
                for (ConsumerRecord<byte[], byte[]> one : connected.poll(WAIT)) found.add(row(one));
            }
        }
        return found;
    }

    private static List<Object> row(ConsumerRecord<byte[], byte[]> one) {
        List<Object> headers = new ArrayList<>();
        one.headers().forEach(header -> headers.add(listOf(header.key(), hexed(header.value()))));
        return listOf(one.offset(), one.timestamp(), hexed(one.key()), hexed(one.value()), headers);
    }

    private static List<Object> listOf(Object... parts) {
        return new ArrayList<>(java.util.Arrays.asList(parts));
    }

    private static String hexed(byte[] data) {
        return data == null ? null : HexFormat.of().formatHex(data);
    }

    private static Object lookups(String address, JsonNode task) {
        TopicPartition partition = new TopicPartition(task.get("topic").asText(), 0);
        List<Object> found = new ArrayList<>();
        try (var connected = consumer(address, Map.of())) {
            for (JsonNode timestamp : task.get("timestamps")) {
                var answer = connected.offsetsForTimes(Map.of(partition, timestamp.asLong())).get(partition);
                found.add(answer == null ? null : List.of(answer.timestamp(), answer.offset()));
            }
        }
        return found;
    }

    private static Object group(String address, JsonNode task) {
        List<Object> parts = new ArrayList<>();
        for (JsonNode end : task.get("ends")) {
            List<Long> part = new ArrayList<>();
            try (var connected = consumer(address, Map.of("group.id", task.get("group").asText(), "max.poll.records", "1"))) {
                connected.subscribe(List.of(task.get("topic").asText()));
                while (part.isEmpty() || part.get(part.size() - 1) < end.asLong() - 1) {
                    for (ConsumerRecord<byte[], byte[]> one : connected.poll(WAIT)) part.add(one.offset());
                }
                connected.commitSync();
            }
            parts.add(part);
        }
        return parts;
    }

    private static Object produce(String address, JsonNode task) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("acks", "all");
        settings.put("enable.idempotence", String.valueOf(task.get("idempotent").asBoolean()));
        List<Object> offsets = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < task.get("count").asInt(); number++) {
                byte[] value = (task.get("prefix").asText() + "-" + number).getBytes();
                sent.add(producer.send(new ProducerRecord<>(task.get("topic").asText(), value)));
            }
            for (Future<RecordMetadata> one : sent) offsets.add(one.get().offset());
        }
        return offsets;
    }

    /** Writes record after record for some seconds, whatever becomes of the server; what comes back was acknowledged. */
    private static Object steady(String address, JsonNode task) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("linger.ms", "5");
        // Without end: who gives up sends again under a new epoch.
        settings.put("delivery.timeout.ms", String.valueOf(Integer.MAX_VALUE));
        settings.put("max.block.ms", "600000");
        settings.put("reconnect.backoff.max.ms", "500");
        List<Integer> acknowledged = Collections.synchronizedList(new ArrayList<>());
        List<Integer> failed = Collections.synchronizedList(new ArrayList<>());
        int number = 0;
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            long deadline = System.nanoTime() + (long) (task.get("seconds").asDouble() * 1e9);
            for (; System.nanoTime() < deadline; number++) {
                int one = number;
                byte[] value = (task.get("prefix").asText() + "-" + number).getBytes();
                producer.send(new ProducerRecord<>(task.get("topic").asText(), value),
                    (metadata, error) -> (error == null ? acknowledged : failed).add(one));
                Thread.sleep((long) (task.get("pause").asDouble() * 1000));
            }
            producer.flush();
        }
        return Map.of("acknowledged", acknowledged, "failed", failed, "sent", number, "left", 0);
    }
}
