package seglog.bench;

import java.nio.ByteBuffer;
import org.apache.kafka.common.record.internal.Record;

/** One number for the contents of a log, as benchmarks/contents.py defines it. */
final class Contents {
    private static final long MULTIPLIER = 0x9E3779B97F4A7C15L;

    long number;
    long count;

    /** What a pass adds up that is timed and not checked; as it counts nothing, nobody takes it for the number. */
    static Contents uncounted(long sum) {
        Contents contents = new Contents();
        contents.number = sum;
        return contents;
    }

    /** A record that is visited. */
    void add(Record record) {
        add(record.offset(), record.timestamp(), record.keySize(), record.valueSize(),
            edges(record.key()) | edges(record.value()) << 16, record.headers().length);
    }

    /** A record by its fields. */
    void add(long offset, long timestamp, int keySize, int valueSize, long edges, int headers) {
        word(offset + (timestamp << 17) + (keySize + 1L << 40) + (valueSize + 1L << 29) + (edges << 31)
            + ((long) headers << 57));
    }

    /** Whatever one piece comes to. */
    void word(long word) {
        number = number * MULTIPLIER + word;
        count++;
    }

    private static long edges(ByteBuffer bytes) {
        if (bytes == null || !bytes.hasRemaining()) {
            return 0;
        }
        return bytes.get(bytes.position()) & 0xff | (bytes.get(bytes.limit() - 1) & 0xff) << 8;
    }
}
