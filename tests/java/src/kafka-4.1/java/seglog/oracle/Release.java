package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.log.remote.metadata.storage.NewerCache;
import org.apache.kafka.server.log.remote.metadata.storage.SegmentCache;
import org.apache.kafka.server.log.remote.storage.ManagerDoor;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.OffsetMap;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import seglog.kafka.InlineScheduler;
import seglog.kafka.StandingTime;

/** What is called differently in 4.1 than in 3.9. */
final class Release {
    /** The setting for segments smaller than a megabyte. */
    static final String SEGMENT_BYTES = LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG;

    private static final int BYTES_PER_KEY = 24;
    private static final double FULL = 1.0;

    private Release() {
    }

    static void append(LogSegment segment, MemoryRecords records, Summary summary) throws IOException {
        segment.append(summary.lastOffset(), records);
    }

    static int recover(LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws IOException {
        return segment.recover(producers, epochs);
    }

    static void clean(File directory, LogConfig config, Start start, Time time, Scheduler scheduler, Cleaning cleaning,
            ObjectNode answer) throws IOException, GeneralSecurityException {
        try (UnifiedLog log = unified(directory, config, start, time, scheduler)) {
            long end = log.logEndOffset();
            log.updateHighWatermark(Math.min(cleaning.highWatermark(), end));
            LogCleanerManager.OffsetsToClean offsets =
                LogCleanerManager.cleanableOffsets(log, cleaning.cleanerOffset(), time.milliseconds());
            LogToClean dirty =
                new LogToClean(log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
            answer.put("firstDirtyOffset", dirty.firstDirtyOffset());
            answer.put("firstUncleanableOffset", dirty.firstUncleanableOffset());
            answer.put("cleanSize", dirty.cleanBytes());
            answer.put("dirtySize", dirty.cleanableBytes());
            if (dirty.cleanableBytes() > 0) {
                OffsetMap map = new SkimpyOffsetMap(cleaning.mapSlots() * BYTES_PER_KEY);
                Throttler throttler = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "none", "none", time);
                Cleaner cleaner = new Cleaner(0, map, cleaning.bufferSize(), Integer.MAX_VALUE, FULL, throttler, time,
                    partition -> { });
                answer.put("endOffset", cleaner.doClean(dirty, time.milliseconds()).getKey());
            }
        }
    }

    private static UnifiedLog unified(File directory, LogConfig config, Start start, Time time, Scheduler scheduler)
            throws IOException {
        return UnifiedLog.create(directory, config, start.logStartOffset(), start.recoveryPoint(), scheduler,
            new BrokerTopicStats(false), time, Start.TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Start.PRODUCER_EXPIRATION_MS, false), Start.EXPIRATION_CHECK_MS,
            new LogDirFailureChannel(1), start.isClean(), Optional.empty());
    }

    static Log open(File directory, LogConfig config, Start start, Time time, Scheduler scheduler)
            throws IOException {
        UnifiedLog log = unified(directory, config, start, time, scheduler);
        return new Log() {
            @Override
            public void appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin) {
                log.appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL);
            }

            @Override
            public void appendAsFollower(MemoryRecords records, int leaderEpoch) {
                log.appendAsFollower(records, leaderEpoch);
            }

            @Override
            public void roll() throws IOException {
                log.roll();
            }

            @Override
            public int deleteOldSegments() throws IOException {
                log.updateHighWatermark(log.logEndOffset());
                return log.deleteOldSegments();
            }

            @Override
            public long logEndOffset() {
                return log.logEndOffset();
            }

            @Override
            public long logStartOffset() {
                return log.logStartOffset();
            }

            @Override
            public void close() {
                log.close();
            }
        };
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
