package seglog.cluster;

import java.util.function.IntPredicate;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.controller.PartitionChangeBuilder;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.MetadataVersion;

/** What is called differently from release to release. */
final class Release {
    static final MetadataProvenance PROVENANCE = new MetadataProvenance(0L, 0, 0L, true);

    private Release() {
    }

    /** Returns a builder of changes to a partition; a leader has to be acceptable. */
    static PartitionChangeBuilder changes(
        PartitionRegistration partition, IntPredicate isAcceptable, int minIsr, boolean hasElr) {
        return new PartitionChangeBuilder(
            partition, Uuid.ONE_UUID, 0, isAcceptable, MetadataVersion.latestProduction(), minIsr)
            .setEligibleLeaderReplicasEnabled(hasElr);
    }
}
