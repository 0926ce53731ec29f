package seglog.adapter;

import java.util.List;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import scala.Option;

/** A log in Scala whose segments are in Java, from 3.7 to 4.0: what these releases call alike. */
public abstract class ScalaLog {
    public final kafka.log.UnifiedLog before;

    protected ScalaLog(kafka.log.UnifiedLog before) {
        this.before = before;
    }

    public abstract LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin,
            RequestLocal requestLocal, VerificationGuard guard);

    public void updateHighestOffsetInRemoteStorage(long offset) {
        before.updateHighestOffsetInRemoteStorage(offset);
    }

    public LogAppendInfo appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin) {
        return appendAsLeader(records, leaderEpoch, origin, RequestLocal.noCaching(), VerificationGuard.SENTINEL);
    }

    public FetchDataInfo read(long start, int maxBytes, FetchIsolation isolation, boolean minOneMessage) {
        return before.read(start, maxBytes, isolation, minOneMessage);
    }

    public List<LogSegment> logSegments() {
        return List.copyOf(before.logSegments());
    }

    public LogSegment activeSegment() {
        return before.activeSegment();
    }

    public LogSegment roll() {
        return before.roll(Option.empty());
    }

    public void flush(boolean isForced) {
        before.flush(isForced);
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
}
