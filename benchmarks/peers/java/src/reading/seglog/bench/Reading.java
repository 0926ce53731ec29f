package seglog.bench;

import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/** Works that read a log from end to end. */
final class Reading {
    private Reading() {
    }

    /** Walk over the batches. */
    static Contents scan(Records records) {
        Contents contents = new Contents();
        for (RecordBatch batch : records.batches()) {
            contents.word(batch.lastOffset() + ((long) batch.sizeInBytes() << 40));
        }
        return contents;
    }

    /** Check every batch. */
    static Contents crc(Records records) {
        Contents contents = new Contents();
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            contents.word(batch.checksum());
        }
        return contents;
    }

    /** Check every batch and visit every record; {@code check} tells what they come to. */
    static Contents visit(Records records, boolean check) {
        if (check) {
            Contents contents = new Contents();
            each(records, contents::add);
            return contents;
        }
        long sum = 0;
        try (BufferSupplier buffers = BufferSupplier.create()) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                try (CloseableIterator<Record> found = batch.streamingIterator(buffers)) {
                    while (found.hasNext()) {
                        Record record = found.next();
                        sum += record.offset() + record.timestamp() + record.keySize() + record.valueSize();
                    }
                }
            }
        }
        return Contents.uncounted(sum);
    }

    /** Check every batch and put every record into columns. */
    static Contents columns(Records records, boolean check) {
        Contents contents = check ? new Contents() : null;
        Columns columns = new Columns(contents);
        each(records, columns::add);
        columns.flush();
        return contents == null ? new Contents() : contents;
    }

    /** What is done with a record. */
    interface Visitor {
        void accept(Record record);
    }

    static void each(Records records, Visitor visitor) {
        try (BufferSupplier buffers = BufferSupplier.create()) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                try (CloseableIterator<Record> found = batch.streamingIterator(buffers)) {
                    while (found.hasNext()) {
                        visitor.accept(found.next());
                    }
                }
            }
        }
    }
}
