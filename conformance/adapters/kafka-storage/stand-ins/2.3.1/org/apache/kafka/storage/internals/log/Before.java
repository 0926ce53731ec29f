package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.Optional;
import kafka.api.ApiVersion;
import kafka.log.Log;
import kafka.server.LogDirFailureChannel;
import kafka.utils.Scheduler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.jdk.javaapi.OptionConverters;

/** What only this release calls so. */
public final class Before {
    private Before() {
    }

    static Log log(File directory, LogConfig config, long start, long recoveryPoint, Scheduler scheduler,
            BrokerTopicStats stats, Time time, int producerMs, int checkMs, LogDirFailureChannel failures) {
        return Log.apply(directory, config, start, recoveryPoint, scheduler, stats, time, producerMs, checkMs, failures);
    }

    static kafka.log.LogAppendInfo append(Log log, MemoryRecords records, int leaderEpoch, boolean isClient) {
        return log.appendAsLeader(records, leaderEpoch, isClient, ApiVersion.latestVersion());
    }

    static void assign(Log log, int epoch, long startOffset) {
        log.maybeAssignEpochStartOffset(epoch, startOffset);
    }

    static Optional<FileRecords.TimestampAndOffset> lookup(Log log, long timestamp) {
        return OptionConverters.toJava(log.fetchOffsetByTimestamp(timestamp));
    }

    static kafka.server.FetchDataInfo read(
            Log log, long start, int maxBytes, Option<Object> end, boolean minOneMessage, boolean isCommitted) {
        return log.read(start, maxBytes, end, minOneMessage, isCommitted);
    }

    static kafka.log.LogSegment roll(Log log) {
        return log.roll(Option.empty());
    }

    static Optional<FileRecords.TimestampAndOffset> found(Option<FileRecords.TimestampAndOffset> found) {
        return OptionConverters.toJava(found);
    }

    static kafka.log.ProducerStateManager producers(TopicPartition partition, File directory, int producerMs, Time time) {
        return new kafka.log.ProducerStateManager(partition, directory, producerMs);
    }

    public static kafka.server.epoch.LeaderEpochFileCache epochs(
            TopicPartition partition, kafka.server.checkpoints.LeaderEpochCheckpointFile file) {
        return new kafka.server.epoch.LeaderEpochFileCache(partition, () -> 0L, file);
    }

    public static kafka.server.checkpoints.OffsetCheckpointFile offsets(File file, LogDirFailureChannel failures) {
        return new kafka.server.checkpoints.OffsetCheckpointFile(file, failures);
    }

    static AbortedTransaction asMessage(FetchResponse.AbortedTransaction one) {
        return new AbortedTransaction().setProducerId(one.producerId).setFirstOffset(one.firstOffset);
    }
}
