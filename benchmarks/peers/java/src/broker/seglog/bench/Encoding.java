package seglog.bench;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.TimestampType;

/** Batches made from columns; the columns are those of a log, with its batches. */
final class Encoding {
    private static final int CRC_AT = 17;
    private static final ByteBuffer BUFFER = ByteBuffer.allocate(1 << 20);

    private record Rows(Columns columns, ByteBuffer keys, ByteBuffer values) {
        Rows(Columns columns) {
            this(columns, ByteBuffer.wrap(columns.keys.data), ByteBuffer.wrap(columns.values.data));
        }
    }

    private static String known = "";
    private static List<Rows> batches = List.of();

    private Encoding() {
    }

    /** Read the log, once. */
    static void prepare(String path) throws IOException {
        if (!path.equals(known)) {
            batches = new ArrayList<>();
            for (Records whole : Data.parts(path, "mmap", 1)) {
                for (RecordBatch batch : whole.batches()) {
                    Columns columns = new Columns(null, batch.countOrNull(), batch.sizeInBytes());
                    batch.forEach(columns::add);
                    batches.add(new Rows(columns));
                }
            }
            known = path;
        }
    }

    /** Make the batches again; the number is made of their CRCs. */
    static Contents encode() {
        Contents contents = new Contents();
        for (Rows rows : batches) {
            BUFFER.clear();
            Columns columns = rows.columns;
            MemoryRecordsBuilder builder = MemoryRecords.builder(BUFFER, RecordBatch.MAGIC_VALUE_V2, Compression.NONE,
                TimestampType.CREATE_TIME, columns.offsets[0]);
            for (int row = 0; row < columns.rows; row++) {
                builder.appendWithOffset(columns.offsets[row], columns.timestamps[row],
                    view(rows.keys, columns.keys, row), view(rows.values, columns.values, row));
            }
            MemoryRecords made = builder.build();
            contents.word(made.buffer().getInt(CRC_AT) & 0xffffffffL);
        }
        return contents;
    }

    private static ByteBuffer view(ByteBuffer all, Columns.Bytes column, int row) {
        int end = column.ends[row];
        return column.sizes[row] < 0 ? null : all.limit(end).position(end - column.sizes[row]);
    }
}
