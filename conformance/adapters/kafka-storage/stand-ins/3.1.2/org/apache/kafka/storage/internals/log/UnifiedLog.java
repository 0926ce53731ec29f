package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.List;
import java.util.Optional;
import kafka.server.LogDirFailureChannel;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;

/** A log, by the name and with the methods that it has since 4.0. */
public final class UnifiedLog {
    final kafka.log.UnifiedLog before;

    private UnifiedLog(kafka.log.UnifiedLog before) {
        this.before = before;
    }

    public static UnifiedLog create(File directory, LogConfig config, long start, long recoveryPoint,
            Scheduler scheduler, BrokerTopicStats stats, Time time, int transactionMs,
            ProducerStateManagerConfig producers, int checkMs, LogDirFailureChannel failures, boolean isClean,
            Optional<Uuid> topicId) {
        return new UnifiedLog(Before.log(directory, config, start, recoveryPoint, scheduler.before(), stats, time,
            producers.producerIdExpirationMs(), checkMs, failures, isClean));
    }

    public LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin) {
        return appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL);
    }

    public LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            RequestLocal requestLocal, VerificationGuard guard) {
        return LogAppendInfo.of(Before.append(before, records, leaderEpoch, origin.before));
    }

    public LogAppendInfo appendAsFollower(MemoryRecords records, int leaderEpoch) {
        return LogAppendInfo.of(before.appendAsFollower(records));
    }

    public void assignEpochStartOffset(int epoch, long startOffset) {
        before.maybeAssignEpochStartOffset(epoch, startOffset);
    }

    public OffsetResultHolder fetchOffsetByTimestamp(long timestamp, Optional<?> remote) {
        return new OffsetResultHolder(OptionConverters.toJava(before.fetchOffsetByTimestamp(timestamp)));
    }

    public FetchDataInfo read(long start, int maxBytes, FetchIsolation isolation, boolean minOneMessage) {
        return new FetchDataInfo(before.read(start, maxBytes, isolation.before, minOneMessage));
    }

    public List<LogSegment> logSegments() {
        return CollectionConverters.asJavaCollection(before.logSegments()).stream().map(LogSegment::new).toList();
    }

    public LogSegment activeSegment() {
        return new LogSegment(before.activeSegment());
    }

    public LogSegment roll() {
        return new LogSegment(before.roll(Option.empty()));
    }

    public void flush(boolean isForced) {
        before.flush();
    }

    public int deleteOldSegments() {
        return before.deleteOldSegments();
    }

    public boolean truncateTo(long offset) {
        return before.truncateTo(offset);
    }

    public void updateHighWatermark(long offset) {
        before.updateHighWatermark(offset);
    }

    public long logStartOffset() {
        return before.logStartOffset();
    }

    public long logEndOffset() {
        return before.logEndOffset();
    }

    public long lastStableOffset() {
        return before.lastStableOffset();
    }

    public long recoveryPoint() {
        return before.recoveryPoint();
    }

    public void close() {
        before.close();
    }

    /** What a lookup found. */
    public record OffsetResultHolder(Optional<FileRecords.TimestampAndOffset> timestampAndOffsetOpt) {
    }
}
