package seglog.oracle;

import java.io.File;
import java.io.IOException;
import java.util.Optional;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** What is called differently in 4.1 than in 3.9. */
final class Release {
    /** The setting for segments smaller than a megabyte. */
    static final String SEGMENT_BYTES = LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG;

    private Release() {
    }

    static void append(LogSegment segment, MemoryRecords records, Summary summary) throws IOException {
        segment.append(summary.lastOffset(), records);
    }

    static int recover(LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws IOException {
        return segment.recover(producers, epochs);
    }

    static Log open(File directory, LogConfig config, Start start, Time time, Scheduler scheduler)
            throws IOException {
        UnifiedLog log = UnifiedLog.create(directory, config, start.logStartOffset(), start.recoveryPoint(), scheduler,
            new BrokerTopicStats(false), time, Start.TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Start.PRODUCER_EXPIRATION_MS, false), Start.EXPIRATION_CHECK_MS,
            new LogDirFailureChannel(1), start.isClean(), Optional.empty());
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
