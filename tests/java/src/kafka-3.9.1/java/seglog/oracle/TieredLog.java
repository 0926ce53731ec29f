package seglog.oracle;

import java.io.File;
import java.util.concurrent.ConcurrentHashMap;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import seglog.kafka.InlineScheduler;

/** What is called differently of a log with remote storage in 3.9.1 than in 4.4. */
final class TieredLog {
    private TieredLog() {
    }

    static TieredRetention.Log open(File directory, LogConfig config, Start start, Time time, boolean isEnabled)
            {
        UnifiedLog log = UnifiedLog$.MODULE$.apply(directory, config, start.logStartOffset(), start.recoveryPoint(),
            new InlineScheduler(), new BrokerTopicStats(isEnabled), time, Start.TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Start.PRODUCER_EXPIRATION_MS, false), Start.EXPIRATION_CHECK_MS,
            new LogDirFailureChannel(1), start.isClean(), Option.empty(), true, new ConcurrentHashMap<>(), isEnabled,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        return new TieredRetention.Log() {
            @Override
            public void updateHighestOffsetInRemoteStorage(long offset) {
                log.updateHighestOffsetInRemoteStorage(offset);
            }

            @Override
            public void updateHighWatermark(long offset) {
                log.updateHighWatermark(offset);
            }

            @Override
            public int deleteOldSegments() {
                return log.deleteOldSegments();
            }

            @Override
            public Iterable<LogSegment> segments() {
                return log.logSegments();
            }

            @Override
            public long logStartOffset() {
                return log.logStartOffset();
            }

            @Override
            public long localLogStartOffset() {
                return log.localLogStartOffset();
            }

            @Override
            public long logEndOffset() {
                return log.logEndOffset();
            }

            @Override
            public long onlyLocalLogSegmentsSize() {
                return log.onlyLocalLogSegmentsSize();
            }

            @Override
            public void close() {
                log.close();
            }
        };
    }
}
