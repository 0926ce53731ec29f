package seglog.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Optional;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
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
}
