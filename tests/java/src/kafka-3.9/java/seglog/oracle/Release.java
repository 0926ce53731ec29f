package seglog.oracle;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import kafka.server.RequestLocal;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;

/** What is called differently in 3.9 than in 4.1. */
final class Release {
    /** The setting for segments smaller than a megabyte; no other is needed here. */
    static final String SEGMENT_BYTES = "segment.bytes";

    private Release() {
    }

    static void append(LogSegment segment, MemoryRecords records, Summary summary) throws IOException {
        segment.append(summary.lastOffset(), summary.maxTimestamp(), summary.offsetOfMaxTimestamp(), records);
    }

    static int recover(LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs)
            throws IOException {
        return segment.recover(producers, Optional.of(epochs));
    }

    static void clean(File directory, LogConfig config, Start start, Time time, Scheduler scheduler, Cleaning cleaning,
            ObjectNode answer) {
        throw new UnsupportedOperationException("the cleaner of this release is not asked");
    }

    static Log open(File directory, LogConfig config, Start start, Time time, Scheduler scheduler)
            throws IOException {
        UnifiedLog log = UnifiedLog$.MODULE$.apply(directory, config, start.logStartOffset(), start.recoveryPoint(),
            scheduler, new BrokerTopicStats(false), time, Start.TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Start.PRODUCER_EXPIRATION_MS, false), Start.EXPIRATION_CHECK_MS,
            new LogDirFailureChannel(1), start.isClean(), Option.empty(), true, new ConcurrentHashMap<>(), false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        return new Log() {
            @Override
            public void appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin) {
                log.appendAsLeader(records, leaderEpoch, origin, MetadataVersion.latestProduction(),
                    RequestLocal.NoCaching(), VerificationGuard.SENTINEL);
            }

            @Override
            public void appendAsFollower(MemoryRecords records, int leaderEpoch) {
                log.appendAsFollower(records);
            }

            @Override
            public void roll() {
                log.roll(Option.empty());
            }

            @Override
            public int deleteOldSegments() {
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
