package seglog.oracle;

import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;

/** What a broker finds out about the batches that it appends together. */
record Summary(long lastOffset, long maxTimestamp, long offsetOfMaxTimestamp) {
    static Summary of(MemoryRecords records) {
        long last = -1;
        long maxTimestamp = RecordBatch.NO_TIMESTAMP;
        long offset = -1;
        for (RecordBatch batch : records.batches()) {
            last = batch.lastOffset();
            if (batch.maxTimestamp() > maxTimestamp) {
                maxTimestamp = batch.maxTimestamp();
                offset = last;
            }
        }
        return new Summary(last, maxTimestamp, offset);
    }
}
