package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
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
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
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
     * and key and value of each. It has these of the records before an error, too, such as the one that no record comes
     * for {@code seconds}.
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
        long patience = TimeUnit.SECONDS.toNanos(request.path("seconds").asInt(LIMIT_S));
        long deadline = System.nanoTime() + patience;
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
                    deadline = System.nanoTime() + patience;
                }
            }
        } finally {
            answer.put("records", count);
            answer.put("sha256", HexFormat.of().formatHex(digest.digest()));
        }
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

    /** Lists how far the {@code groups} given are behind the log end offsets. */
    static void lag(JsonNode request, ObjectNode answer) throws Exception {
        try (Admin admin = Admin.create(common(request))) {
            for (JsonNode group : request.get("groups")) {
                ObjectNode lags = answer.putObject(group.asText());
                Map<TopicPartition, OffsetAndMetadata> positions = admin.listConsumerGroupOffsets(group.asText())
                    .partitionsToOffsetAndMetadata().get(LIMIT_S, TimeUnit.SECONDS);
                Map<TopicPartition, OffsetSpec> latest = new HashMap<>();
                positions.keySet().forEach(partition -> latest.put(partition, OffsetSpec.latest()));
                admin.listOffsets(latest).all().get(LIMIT_S, TimeUnit.SECONDS).forEach((partition, end) ->
                    lags.put(partition.toString(), end.offset() - positions.get(partition).offset()));
            }
        }
    }

    /**
     * Lists settings of the {@code topics} given, and ACLs, quotas and SCRAM users of the cluster.
     *
     * <p>Codes stand for resource types, pattern types, operations, permissions and mechanisms.
     */
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
            acls(admin, answer.putArray("acls"));
            quotas(admin, answer.putArray("quotas"));
            scramUsers(admin, answer.putArray("scramUsers"));
        }
    }

    private static void acls(Admin admin, ArrayNode rows) throws Exception {
        admin.describeAcls(AclBindingFilter.ANY).values().get(LIMIT_S, TimeUnit.SECONDS).forEach(
            binding -> rows.addArray()
                .add(binding.pattern().resourceType().code())
                .add(binding.pattern().name())
                .add(binding.pattern().patternType().code())
                .add(binding.entry().principal())
                .add(binding.entry().host())
                .add(binding.entry().operation().code())
                .add(binding.entry().permissionType().code()));
    }

    private static void quotas(Admin admin, ArrayNode rows) throws Exception {
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get(LIMIT_S, TimeUnit.SECONDS).forEach(
            (entity, values) -> {
                ObjectNode row = rows.addObject();
                ObjectNode parts = row.putObject("entity");
                entity.entries().forEach(parts::put);
                ObjectNode limits = row.putObject("values");
                values.forEach(limits::put);
            });
    }

    private static void scramUsers(Admin admin, ArrayNode rows) throws Exception {
        admin.describeUserScramCredentials().all().get(LIMIT_S, TimeUnit.SECONDS).forEach(
            (user, description) -> description.credentialInfos().forEach(
                info -> rows.addArray().add(user).add(info.mechanism().type()).add(info.iterations())));
    }

    static Map<String, Object> common(JsonNode request) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", request.path("bootstrap").asText());
        settings.put("default.api.timeout.ms", LIMIT_S * 1000);
        return settings;
    }
}
