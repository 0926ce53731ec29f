package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.NavigableMap;
import java.util.Optional;
import kafka.log.remote.ManagerDoor;
import org.apache.kafka.server.log.remote.metadata.storage.SegmentCache;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;

/** What is called differently of remote segments in 3.9 than in 4.1. */
final class TierRelease {
    private TierRelease() {
    }

    static RemoteLogSegmentMetadata segment(RemoteLogSegmentId id, JsonNode event, Optional<CustomMetadata> custom,
            RemoteLogSegmentState state, NavigableMap<Integer, Long> epochs) {
        return new RemoteLogSegmentMetadata(id, event.path("startOffset").asLong(), event.path("endOffset").asLong(),
            event.path("maxTimestampMs").asLong(), event.path("broker").asInt(), event.path("at").asLong(),
            event.path("size").asInt(), custom, state, epochs);
    }

    static boolean isWithin(RemoteLogSegmentMetadata segment, long logEnd, NavigableMap<Integer, Long> epochs) {
        return ManagerDoor.isWithin(segment, logEnd, epochs);
    }

    /** This release cannot tell. */
    static Optional<RemoteLogSegmentMetadata> withTransactions(SegmentCache cache, int epoch, long offset) {
        return Optional.empty();
    }

    /** Left to the newer release, whose manager is easier to set up. */
    static void manage(JsonNode request, SegmentCache cache, NavigableMap<Integer, Long> checkpoint, ObjectNode answer) {
    }
}
