package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka: a {@code KafkaProducer} that sends the records of each batch at once. What it sent, the endpoint sees. */
final class Producing {
    private static final long WAIT_SECONDS = 8;
    private static final String WAIT = String.valueOf(1000 * WAIT_SECONDS);
    private static final String MOST_SIZE = String.valueOf(1 << 23);

    private Producing() {
    }

    static void encode(JsonNode request, ObjectNode answer) throws Exception {
        JsonNode place = request.get("place");
        for (JsonNode batch : request.path("batches")) {
            try (var producer = producer(place, batch.path("codec").asText("none"))) {
                if (isTransactional(place)) {
                    producer.initTransactions();
                    producer.beginTransaction();
                }
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (JsonNode record : batch.path("records")) {
                    sent.add(producer.send(record(place.get("topic").asText(), record)));
                }
                producer.flush();
                for (Future<RecordMetadata> each : sent) {
                    each.get(WAIT_SECONDS, TimeUnit.SECONDS);
                }
                if (isTransactional(place)) {
                    producer.commitTransaction();
                }
            }
        }
    }

    /** A flush does not wait until the time to linger is over. */
    private static KafkaProducer<byte[], byte[]> producer(JsonNode place, String codec) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", place.get("bootstrap").asText());
        settings.put("acks", "all");
        settings.put("enable.idempotence", String.valueOf(place.has("producer")));
        settings.put("retries", place.has("producer") ? "1" : "0");
        if (isTransactional(place)) {
            settings.put("transactional.id", place.get("topic").asText());
        }
        settings.put("compression.type", codec.toLowerCase(Locale.ROOT));
        settings.put("linger.ms", WAIT);
        settings.put("batch.size", MOST_SIZE);
        settings.put("max.request.size", MOST_SIZE);
        settings.put("request.timeout.ms", WAIT);
        settings.put("delivery.timeout.ms", String.valueOf(2 * 1000 * WAIT_SECONDS));
        settings.put("max.block.ms", WAIT);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static boolean isTransactional(JsonNode place) {
        return place.path("producer").asText().equals("transactional");
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, JsonNode record) {
        long timestamp = Batches.number(record, "timestamp", -1);
        if (timestamp < 0) {
            throw new Serving.Skip("its producer takes no time before 1970");
        }
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.path("headers")) {
            String name = new String(Serving.unhexed(header.get(0)), StandardCharsets.UTF_8);
            headers.add(new RecordHeader(name, Serving.unhexed(header.get(1))));
        }
        return new ProducerRecord<>(topic, 0, timestamp, Serving.unhexed(record.get("key")), Serving.unhexed(record.get("value")), headers);
    }
}
