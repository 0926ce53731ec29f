package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.jdk.javaapi.OptionConverters;
import seglog.adapter.ScalaLog;

/** A log, by the name and with the methods that it has since 4.0. */
public final class UnifiedLog extends ScalaLog {
    private UnifiedLog(kafka.log.UnifiedLog before) {
        super(before);
    }

    public static UnifiedLog create(File directory, LogConfig config, long start, long recoveryPoint,
            Scheduler scheduler, BrokerTopicStats stats, Time time, int transactionMs,
            ProducerStateManagerConfig producers, int checkMs, LogDirFailureChannel failures, boolean isClean,
            Optional<Uuid> topicId) {
        return create(directory, config, start, recoveryPoint, scheduler, stats, time, transactionMs, producers, checkMs,
            failures, isClean, topicId, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    public static UnifiedLog create(File directory, LogConfig config, long start, long recoveryPoint,
            Scheduler scheduler, BrokerTopicStats stats, Time time, int transactionMs,
            ProducerStateManagerConfig producers, int checkMs, LogDirFailureChannel failures, boolean isClean,
            Optional<Uuid> topicId, ConcurrentMap<String, Object> deleting, boolean isTiered, LogOffsetsListener listener) {
        return new UnifiedLog(kafka.log.UnifiedLog$.MODULE$.apply(directory, config, start, recoveryPoint, scheduler,
            stats, time, transactionMs, producers, checkMs, failures, isClean, OptionConverters.toScala(topicId), true,
            deleting, isTiered, listener));
    }

    @Override
    public LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            RequestLocal requestLocal, VerificationGuard guard) {
        return before.appendAsLeader(
            records, leaderEpoch, origin, MetadataVersion.latestProduction(), requestLocal.before, guard);
    }

    public LogAppendInfo appendAsFollower(MemoryRecords records, int leaderEpoch) {
        return Before.follow(before, records, leaderEpoch);
    }

    public void assignEpochStartOffset(int epoch, long startOffset) {
        before.maybeAssignEpochStartOffset(epoch, startOffset);
    }

    public OffsetResultHolder fetchOffsetByTimestamp(long timestamp, Optional<?> remote) {
        return new OffsetResultHolder(OptionConverters.toJava(before.fetchOffsetByTimestamp(timestamp, Option.empty())));
    }

    /** What a lookup found. */
    public record OffsetResultHolder(Optional<FileRecords.TimestampAndOffset> timestampAndOffsetOpt) {
    }
}
