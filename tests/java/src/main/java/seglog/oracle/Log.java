package seglog.oracle;

import java.io.IOException;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.storage.internals.log.AppendOrigin;

/** A whole log as a broker holds it. */
interface Log extends AutoCloseable {
    void appendAsLeader(MemoryRecords records, int leaderEpoch, AppendOrigin origin) throws IOException;

    void appendAsFollower(MemoryRecords records, int leaderEpoch) throws IOException;

    void roll() throws IOException;

    /** One pass of retention, everything being replicated; the number of segments that went. */
    int deleteOldSegments() throws IOException;

    long logEndOffset();

    long logStartOffset();

    @Override
    void close();
}
