package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.log.remote.metadata.storage.NewerCache;
import org.apache.kafka.server.log.remote.metadata.storage.SegmentCache;
import org.apache.kafka.server.log.remote.storage.ManagerDoor;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import seglog.kafka.InlineScheduler;
import seglog.kafka.StandingTime;

/** What is called differently of remote segments since 4.1. */
final class TierRelease {
    private TierRelease() {
    }

    static RemoteLogSegmentMetadata segment(RemoteLogSegmentId id, JsonNode event, Optional<CustomMetadata> custom,
            RemoteLogSegmentState state, NavigableMap<Integer, Long> epochs) {
        return new RemoteLogSegmentMetadata(id, event.path("startOffset").asLong(), event.path("endOffset").asLong(),
            event.path("maxTimestampMs").asLong(), event.path("broker").asInt(), event.path("at").asLong(),
            event.path("size").asInt(), custom, state, epochs, event.path("isTransactionIndexEmpty").asBoolean());
    }

    static boolean isWithin(RemoteLogSegmentMetadata segment, long logEnd, NavigableMap<Integer, Long> epochs) {
        return ManagerDoor.isWithin(segment, logEnd, epochs);
    }

    static Optional<RemoteLogSegmentMetadata> withTransactions(SegmentCache cache, int epoch, long offset) {
        return NewerCache.withTransactions(cache, epoch, offset);
    }

    /** What a broker copies next, and what it deletes, with the log that the request describes. */
    static void manage(JsonNode request, SegmentCache cache, NavigableMap<Integer, Long> checkpoint, ObjectNode answer)
            throws Exception {
        File directory = new File(request.path("directory").asText());
        StandingTime time = new StandingTime(request.path("nowMs").asLong());
        LogConfig config = new LogConfig(Map.of("remote.storage.enable", "true", "retention.ms",
            request.path("retentionMs").asText(), "retention.bytes", request.path("retentionBytes").asText()));
        try (UnifiedLog log = UnifiedLog.create(directory, config, request.path("logStartOffset").asLong(),
                request.path("logEndOffset").asLong(), new InlineScheduler(), new BrokerTopicStats(true), time,
                Start.TRANSACTION_TIMEOUT_MS, new ProducerStateManagerConfig(Start.PRODUCER_EXPIRATION_MS, false),
                Start.EXPIRATION_CHECK_MS, new LogDirFailureChannel(1), true, Optional.empty(),
                new ConcurrentHashMap<>(), true, LogOffsetsListener.NO_OP_OFFSETS_LISTENER)) {
            List<EpochEntry> entries = new ArrayList<>();
            checkpoint.forEach((epoch, offset) -> entries.add(new EpochEntry(epoch, offset)));
            log.leaderEpochCache().assign(entries);
            answer.put("logEndOffset", log.logEndOffset()).put("logStartOffset", log.logStartOffset());
            ArrayNode epochs = answer.putArray("epochOf");
            request.path("offsets").forEach(offset ->
                epochs.add(log.leaderEpochCache().epochForOffset(offset.asLong()).orElse(-1)));
            try (ManagerDoor manager = new ManagerDoor(directory, cache, log, Tier.PARTITION, time)) {
                OffsetAndEpoch copied = manager.highestCopied();
                answer.putArray("copied").add(copied.offset()).add(copied.epoch());
                ArrayNode deleted = answer.putArray("deleted");
                manager.expire().forEach(id -> deleted.add(Tier.number(id)));
                answer.put("newLogStartOffset", manager.logStartOffset());
            }
        }
    }
}
