package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What a broker that runs serves to stock clients. */
final class Served {
    private static final int LIMIT_S = 60;

    private Served() {
    }

    /**
     * Reads a {@code partition} of a {@code topic} from its start to its end with the {@code isolation} given.
     *
     * <p>The answer has {@code begin}, {@code end}, the number of {@code records}, and in {@code sha256} a digest over
     * each record: offset and timestamp (int64), key and value (int32 size or -1, bytes), number of headers (int32),
     * and key and value of each.
     */
    static void served(JsonNode request, ObjectNode answer) throws Exception {
        Map<String, Object> settings = common(request);
        settings.put("isolation.level", request.path("isolation").asText());
        settings.put("allow.auto.create.topics", false);
        settings.put("fetch.max.wait.ms", 50);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        TopicPartition partition = new TopicPartition(request.path("topic").asText(), request.path("partition").asInt());
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        int count = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            answer.put("begin", consumer.beginningOffsets(Set.of(partition)).get(partition));
            long end = consumer.endOffsets(Set.of(partition)).get(partition);
            answer.put("end", end);
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException("position " + consumer.position(partition) + " of " + end);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    add(digest, record);
                    count++;
                }
            }
        }
        answer.put("records", count);
        answer.put("sha256", HexFormat.of().formatHex(digest.digest()));
    }

    private static void add(MessageDigest digest, ConsumerRecord<byte[], byte[]> record) {
        digest.update(ByteBuffer.allocate(16).putLong(record.offset()).putLong(record.timestamp()).array());
        add(digest, record.key());
        add(digest, record.value());
        Header[] headers = record.headers().toArray();
        digest.update(ByteBuffer.allocate(4).putInt(headers.length).array());
        for (Header header : headers) {
            add(digest, header.key().getBytes(StandardCharsets.UTF_8));
            add(digest, header.value());
        }
    }

    private static void add(MessageDigest digest, byte[] bytes) {
        digest.update(ByteBuffer.allocate(4).putInt(bytes == null ? -1 : bytes.length).array());
        if (bytes != null) {
            digest.update(bytes);
        }
    }

    /** Lists the positions of the {@code groups} given: offsets by topic and partition. */
    static void groups(JsonNode request, ObjectNode answer) throws Exception {
        try (Admin admin = Admin.create(common(request))) {
            for (JsonNode group : request.get("groups")) {
                ObjectNode positions = answer.putObject(group.asText());
                admin.listConsumerGroupOffsets(group.asText()).partitionsToOffsetAndMetadata()
                    .get(LIMIT_S, TimeUnit.SECONDS)
                    .forEach((partition, position) -> positions.put(partition.toString(), position.offset()));
            }
        }
    }

    /** Lists settings of the {@code topics} given, and the number of ACLs, quotas and SCRAM users. */
    static void settings(JsonNode request, ObjectNode answer) throws Exception {
        Collection<ConfigResource> resources = new ArrayList<>();
        request.get("topics").forEach(
            topic -> resources.add(new ConfigResource(ConfigResource.Type.TOPIC, topic.asText())));
        try (Admin admin = Admin.create(common(request))) {
            ObjectNode topics = answer.putObject("topics");
            admin.describeConfigs(resources).all().get(LIMIT_S, TimeUnit.SECONDS).forEach((resource, config) -> {
                ObjectNode own = topics.putObject(resource.name());
                config.entries().stream()
                    .filter(entry -> entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG)
                    .forEach(entry -> own.put(entry.name(), entry.value()));
            });
            answer.put("acls", admin.describeAcls(AclBindingFilter.ANY).values().get(LIMIT_S, TimeUnit.SECONDS).size());
            answer.put("quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities()
                .get(LIMIT_S, TimeUnit.SECONDS).size());
            answer.put("scramUsers", admin.describeUserScramCredentials().all().get(LIMIT_S, TimeUnit.SECONDS).size());
        }
    }

    private static Map<String, Object> common(JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.path("bootstrap").asText());
        settings.put("default.api.timeout.ms", LIMIT_S * 1000);
        return settings;
    }
}
