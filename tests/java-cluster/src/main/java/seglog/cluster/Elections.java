package seglog.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;

/** Lets the controller's own class elect the leader of a partition that has none. */
final class Elections {
    private Elections() {
    }

    /**
     * Elects a leader among the brokers that are {@code alive}; the others were fenced, which takes them out of the ISR.
     *
     * <p>{@code replicas}, {@code isr}, {@code elr} and {@code lastKnownElr} are those of the partition; an ELR counts
     * where the ISR is smaller than {@code minIsr}. With {@code unclean}, other replicas may lead too. The answer has the
     * {@code leader}, -1 for none, and whether it {@code recovers}: it was elected, but may lack committed records.
     */
    static void elect(JsonNode request, ObjectNode answer) throws Exception {
        int[] replicas = ids(request, "replicas");
        Uuid[] directories = new Uuid[replicas.length];
        Arrays.fill(directories, DirectoryId.UNASSIGNED);
        PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(replicas)
            .setDirectories(directories)
            .setIsr(ids(request, "isr"))
            .setElr(ids(request, "elr"))
            .setLastKnownElr(ids(request, "lastKnownElr"))
            .setLeader(-1)
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(3)
            .setPartitionEpoch(5)
            .build();
        Set<Integer> alive = IntStream.of(ids(request, "alive")).boxed().collect(Collectors.toSet());
        PartitionChangeBuilder builder = Release.changes(
            partition, alive::contains, request.path("minIsr").asInt(), request.path("hasElr").asBoolean());
        builder.setDefaultDirProvider(broker -> DirectoryId.UNASSIGNED);
        builder.setTargetIsr(IntStream.of(partition.isr).filter(alive::contains).boxed().toList());
        builder.setUseLastKnownLeaderInBalancedRecovery(true);
        builder.setElection(request.path("unclean").asBoolean()
            ? PartitionChangeBuilder.Election.UNCLEAN
            : PartitionChangeBuilder.Election.ONLINE);
        PartitionChangeRecord change = builder.build()
            .map(record -> (PartitionChangeRecord) record.message())
            .orElseGet(PartitionChangeRecord::new);
        answer.put("leader", Math.max(change.leader(), -1));
        answer.put("recovers", change.leaderRecoveryState() == LeaderRecoveryState.RECOVERING.value());
    }

    private static int[] ids(JsonNode request, String name) {
        return StreamSupport.stream(request.path(name).spliterator(), false).mapToInt(JsonNode::asInt).toArray();
    }
}
