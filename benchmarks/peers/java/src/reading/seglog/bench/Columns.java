package seglog.bench;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.Record;

/** Records as columns in arrays, used again every so many rows. */
final class Columns {
    static final int ROWS = 1 << 16;

    /** Bytes of a column, and where each row ends; a size of -1 is nothing. */
    static final class Bytes {
        byte[] data;
        int[] ends;
        int[] sizes;
        int end;
        int rows;

        Bytes(int rows, int size) {
            data = new byte[size];
            ends = new int[rows];
            sizes = new int[rows];
        }

        void add(ByteBuffer bytes) {
            int size = bytes == null ? -1 : bytes.remaining();
            if (size > 0) {
                room(size);
                bytes.get(bytes.position(), data, end, size);
                end += size;
            }
            finish(size);
        }

        void add(byte[] bytes) {
            if (bytes != null) {
                room(bytes.length);
                System.arraycopy(bytes, 0, data, end, bytes.length);
                end += bytes.length;
            }
            finish(bytes == null ? -1 : bytes.length);
        }

        private void room(int size) {
            if (end + size > data.length) {
                data = Arrays.copyOf(data, Math.max(2 * data.length, end + size));
            }
        }

        private void finish(int size) {
            if (rows == ends.length) {
                ends = Arrays.copyOf(ends, 2 * rows + 1);
                sizes = Arrays.copyOf(sizes, 2 * rows + 1);
            }
            ends[rows] = end;
            sizes[rows++] = size;
        }

        void clear() {
            end = 0;
            rows = 0;
        }

        long edges(int row) {
            return sizes[row] <= 0 ? 0 : data[ends[row] - sizes[row]] & 0xff | (data[ends[row] - 1] & 0xff) << 8;
        }
    }

    private final Contents contents;
    final long[] offsets;
    final long[] timestamps;
    final int[] headerEnds;
    final Bytes keys;
    final Bytes values;
    private final Bytes headerKeys;
    private final Bytes headerValues;
    int rows;

    /** Columns whose rows are told to {@code contents} before they go, unless it is null. */
    Columns(Contents contents) {
        this(contents, ROWS, 1 << 16);
    }

    /** Columns of so many rows, with room for so many bytes. */
    Columns(Contents contents, int capacity, int size) {
        this.contents = contents;
        offsets = new long[capacity];
        timestamps = new long[capacity];
        headerEnds = new int[capacity];
        keys = new Bytes(capacity, size);
        values = new Bytes(capacity, size);
        headerKeys = new Bytes(0, 0);
        headerValues = new Bytes(0, 0);
    }

    void add(Record record) {
        if (rows == offsets.length) {
            flush();
        }
        offsets[rows] = record.offset();
        timestamps[rows] = record.timestamp();
        keys.add(record.key());
        values.add(record.value());
        for (Header header : record.headers()) {
            headerKeys.add(header.key().getBytes(StandardCharsets.UTF_8));
            headerValues.add(header.value());
        }
        headerEnds[rows++] = headerKeys.rows;
    }

    void flush() {
        if (contents != null) {
            for (int row = 0; row < rows; row++) {
                int headers = headerEnds[row] - (row == 0 ? 0 : headerEnds[row - 1]);
                contents.add(offsets[row], timestamps[row], keys.sizes[row], values.sizes[row],
                    keys.edges(row) | values.edges(row) << 16, headers);
            }
        }
        rows = 0;
        keys.clear();
        values.clear();
        headerKeys.clear();
        headerValues.clear();
    }
}
