package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

/** Gives a broker something of everything that a new node has to bring back. */
final class Filled {
    private static final int LIMIT_S = 60;
    private static final int ITERATIONS = 5000;

    private Filled() {
    }

    /**
     * Creates a {@code topic}, writes {@code records} to each of its {@code partitions}, commits the {@code offsets} of
     * a {@code group}, and adds ACLs, quotas and SCRAM users.
     */
    static void fill(JsonNode request, ObjectNode answer) throws Exception {
        String topic = request.path("topic").asText();
        int partitions = request.path("partitions").asInt();
        try (Admin admin = Admin.create(Served.common(request))) {
            NewTopic created = new NewTopic(topic, partitions, (short) 1)
                .configs(Map.of("retention.ms", "-1", "max.message.bytes", "2000000"));
            done(admin.createTopics(List.of(created)).all());
            Written.write(request, answer);
            done(admin.alterConsumerGroupOffsets(request.path("group").asText(), offsets(request, topic)).all());
            done(admin.createAcls(acls(topic)).all());
            done(admin.alterClientQuotas(quotas()).all());
            done(admin.alterUserScramCredentials(scramUsers()).all());
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode request, String topic) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode offset : request.get("offsets")) {
            offsets.put(new TopicPartition(topic, offsets.size()), new OffsetAndMetadata(offset.asLong(), "seen"));
        }
        return offsets;
    }

    private static List<AclBinding> acls(String topic) {
        return List.of(
            acl(ResourceType.TOPIC, topic, PatternType.LITERAL, "User:ann", AclOperation.READ, AclPermissionType.ALLOW),
            acl(ResourceType.TOPIC, "or", PatternType.PREFIXED, "User:bob", AclOperation.WRITE, AclPermissionType.DENY),
            acl(ResourceType.GROUP, "*", PatternType.LITERAL, "User:*", AclOperation.ALL, AclPermissionType.ALLOW),
            acl(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:eve", AclOperation.ALTER_CONFIGS,
                AclPermissionType.DENY));
    }

    private static AclBinding acl(ResourceType type, String name, PatternType pattern, String principal,
            AclOperation operation, AclPermissionType permission) {
        return new AclBinding(
            new ResourcePattern(type, name, pattern), new AccessControlEntry(principal, "10.0.0.7", operation, permission));
    }

    private static List<ClientQuotaAlteration> quotas() {
        Map<String, String> both = new HashMap<>(Map.of(ClientQuotaEntity.USER, "ann"));
        both.put(ClientQuotaEntity.CLIENT_ID, null);
        return List.of(
            quota(Map.of(ClientQuotaEntity.USER, "bob"), "producer_byte_rate", 1048576),
            quota(both, "request_percentage", 12.5),
            quota(Map.of(ClientQuotaEntity.IP, "10.0.0.7"), "connection_creation_rate", 3));
    }

    private static ClientQuotaAlteration quota(Map<String, String> entity, String key, double value) {
        return new ClientQuotaAlteration(
            new ClientQuotaEntity(entity), List.of(new ClientQuotaAlteration.Op(key, value)));
    }

    private static List<UserScramCredentialAlteration> scramUsers() {
        return List.of(
            new UserScramCredentialUpsertion(
                "ann", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, ITERATIONS), "secret of ann"),
            new UserScramCredentialUpsertion(
                "bob", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 2 * ITERATIONS), "secret of bob"));
    }

    static void done(Future<?> future) throws Exception {
        future.get(LIMIT_S, TimeUnit.SECONDS);
    }
}
