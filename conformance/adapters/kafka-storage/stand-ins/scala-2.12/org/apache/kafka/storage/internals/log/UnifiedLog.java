package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import kafka.log.Log;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** A log, by the name and with the methods that it has since 4.0. */
public final class UnifiedLog {
    final Log before;
    private long highWatermark;

    private UnifiedLog(Log before) {
        this.before = before;
        highWatermark = before.logStartOffset();
    }

    /** These releases look for the file of a clean stop themselves. */
    public static UnifiedLog create(File directory, LogConfig config, long start, long recoveryPoint,
            Scheduler scheduler, BrokerTopicStats stats, Time time, int transactionMs,
            ProducerStateManagerConfig producers, int checkMs, LogDirFailureChannel failures, boolean isClean,
            Optional<?> topicId) throws IOException {
        CleanShutdownFileHandler shutdown = new CleanShutdownFileHandler(directory.getParent());
        shutdown.delete();
        if (isClean) {
            shutdown.write(0);
        }
        UnifiedLog log = new UnifiedLog(Before.log(directory, config, start, recoveryPoint, scheduler.before(), stats,
            time, producers.producerIdExpirationMs(), checkMs, failures));
        shutdown.delete();
        return log;
    }

    public LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin) {
        return appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL);
    }

    public LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            RequestLocal requestLocal, VerificationGuard guard) {
        return LogAppendInfo.of(Before.append(before, records, leaderEpoch, origin == AppendOrigin.CLIENT));
    }

    public LogAppendInfo appendAsFollower(MemoryRecords records, int leaderEpoch) {
        return LogAppendInfo.of(before.appendAsFollower(records));
    }

    public void assignEpochStartOffset(int epoch, long startOffset) {
        Before.assign(before, epoch, startOffset);
    }

    public OffsetResultHolder fetchOffsetByTimestamp(long timestamp, Optional<?> remote) {
        return new OffsetResultHolder(Before.lookup(before, timestamp));
    }

    /** A fetch of committed records ends at the last stable offset, which its caller names in these releases. */
    public FetchDataInfo read(long start, int maxBytes, FetchIsolation isolation, boolean minOneMessage) {
        boolean isCommitted = isolation == FetchIsolation.TXN_COMMITTED;
        return new FetchDataInfo(Before.read(before, start, maxBytes,
            isCommitted ? Option.apply((Object) lastStableOffset()) : Option.empty(), minOneMessage, isCommitted));
    }

    public List<LogSegment> logSegments() {
        return CollectionConverters.asJavaCollection(before.logSegments()).stream().map(LogSegment::new).toList();
    }

    public LogSegment activeSegment() {
        return new LogSegment(before.activeSegment());
    }

    public LogSegment roll() {
        return new LogSegment(Before.roll(before));
    }

    public void flush(boolean isForced) {
        before.flush();
    }

    public int deleteOldSegments() {
        return before.deleteOldSegments();
    }

    public void truncateTo(long offset) {
        before.truncateTo(offset);
    }

    public void updateHighWatermark(long offset) {
        highWatermark = offset;
        before.onHighWatermarkIncremented(offset);
    }

    public long logStartOffset() {
        return before.logStartOffset();
    }

    public long logEndOffset() {
        return before.logEndOffset();
    }

    /** As the replica computes it in these releases. */
    public long lastStableOffset() {
        var unstable = before.firstUnstableOffset();
        return unstable.isDefined() ? Math.min(unstable.get().messageOffset(), highWatermark) : highWatermark;
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
