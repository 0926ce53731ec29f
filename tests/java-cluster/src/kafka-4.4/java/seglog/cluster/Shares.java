package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Share groups of a broker that runs. */
final class Shares {
    private static final int LIMIT_S = 60;
    private static final int KEPT_BACK = 3;

    static final Map<String, Cluster.Operation> OPERATIONS =
        Map.of("share", Shares::share, "rest", Shares::rest, "shareOffsets", Shares::shareOffsets,
            "upgrade", Shares::upgrade);

    private Shares() {
    }

    /**
     * Lets each of the {@code groups} read {@code records} of a {@code topic}, and accept those whose offset is no
     * multiple of three; it gives the others back, and they are delivered again.
     */
    static void share(JsonNode request, ObjectNode answer) throws Exception {
        for (JsonNode group : request.get("groups")) {
            readFromStart(request, group.asText());
            read(request, group.asText(), false);
        }
    }

    /** Lists the offsets that each of the {@code groups} still gets, by partition, and accepts them. */
    static void rest(JsonNode request, ObjectNode answer) throws Exception {
        for (JsonNode group : request.get("groups")) {
            ArrayNode rows = answer.putArray(group.asText());
            read(request, group.asText(), true).forEach(rows::add);
        }
    }

    private static void readFromStart(JsonNode request, String group) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        ConfigEntry entry = new ConfigEntry("share.auto.offset.reset", "earliest");
        AlterConfigOp change = new AlterConfigOp(entry, AlterConfigOp.OpType.SET);
        try (Admin admin = Admin.create(Served.common(request))) {
            Filled.done(admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all());
        }
    }

    private static SortedSet<String> read(JsonNode request, String group, boolean acceptsAll) {
        Map<String, Object> settings = Served.common(request);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_S);
        SortedSet<String> seen = new TreeSet<>();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(request.path("topic").asText()));
            while (seen.size() < request.path("records").asInt()) {
                if (System.nanoTime() > deadline) {
                    throw new TimeoutException(group + " got " + seen.size() + " records");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    boolean isKept = !acceptsAll && record.offset() % KEPT_BACK == 0;
                    consumer.acknowledge(record, isKept ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    seen.add(record.topic() + "-" + record.partition() + ":" + record.offset());
                }
                consumer.commitSync();
            }
        }
        return seen;
    }

    /** Lists the start offsets of share {@code groups}, by topic and partition. */
    static void shareOffsets(JsonNode request, ObjectNode answer) throws Exception {
        Stream<JsonNode> groups = StreamSupport.stream(request.get("groups").spliterator(), false);
        Map<String, ListShareGroupOffsetsSpec> asked = groups
            .collect(Collectors.toMap(JsonNode::asText, group -> new ListShareGroupOffsetsSpec()));
        try (Admin admin = Admin.create(Served.common(request))) {
            admin.listShareGroupOffsets(asked).all().get(LIMIT_S, TimeUnit.SECONDS).forEach((group, offsets) -> {
                ObjectNode rows = answer.putObject(group);
                offsets.forEach((partition, info) -> rows.put(
                    partition.topic() + "-" + partition.partition(), info == null ? -1 : info.startOffset()));
            });
        }
    }

    /** Raises {@code features} to the levels given. */
    static void upgrade(JsonNode request, ObjectNode answer) throws Exception {
        try (Admin admin = Admin.create(Served.common(request))) {
            for (Map.Entry<String, JsonNode> feature : request.get("features").properties()) {
                FeatureUpdate update =
                    new FeatureUpdate((short) feature.getValue().asInt(), FeatureUpdate.UpgradeType.UPGRADE);
                Filled.done(admin.updateFeatures(Map.of(feature.getKey(), update), new UpdateFeaturesOptions()).all());
            }
        }
    }
}
