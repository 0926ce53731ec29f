package seglog.bench;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import java.util.zip.Checksum;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/** A plain loop over the bytes of a log, as somebody writes it who is in a hurry; Kafka's classes decompress. */
final class Loop implements AutoCloseable {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    private static final int PREFIX = 12;
    private static final int MAGIC_AT = 16;
    private static final int ATTRIBUTES_AT = 17;
    private static final int RECORDS_AT = 61;
    private static final int CODEC = 7;
    private static final int LOG_APPEND_TIME = 8;

    private final BufferSupplier buffers = BufferSupplier.create();
    private final Compression[] codecs = new Compression[CODEC + 1];
    private final Checksum castagnoli = new CRC32C();
    private final Checksum ieee = new CRC32();
    private final Contents contents;
    private byte[] scratch = new byte[1 << 16];
    private long total;
    private int position;

    private Loop(boolean check) {
        contents = check ? new Contents() : null;
    }

    /** Check every batch and visit every record; {@code check} tells what they come to. */
    static Contents visit(ByteBuffer log, boolean check) {
        try (Loop loop = new Loop(check)) {
            loop.log(log.array(), log.arrayOffset(), log.arrayOffset() + log.limit());
            return loop.contents == null ? Contents.uncounted(loop.total) : loop.contents;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void log(byte[] data, int start, int limit) throws IOException {
        int at = start;
        while (at < limit) {
            int end = at + PREFIX + (int) INT.get(data, at + 8);
            if (data[at + MAGIC_AT] == 2) {
                batch(data, at, end);
            } else {
                message(data, at, end);
            }
            at = end;
        }
    }

    // -- magic 2 ----------------------------------------------------------------------------------------------------

    private void batch(byte[] data, int at, int end) throws IOException {
        verify(castagnoli, data, at + 21, end, (int) INT.get(data, at + 17));
        int attributes = data[at + 22];
        boolean isAppendTime = (attributes & LOG_APPEND_TIME) != 0;
        long offset = (long) LONG.get(data, at);
        long timestamp = (long) LONG.get(data, at + (isAppendTime ? 35 : 27));
        int count = (int) INT.get(data, at + 57);
        if ((attributes & CODEC) == 0) {
            records(data, at + RECORDS_AT, end, count, offset, timestamp, isAppendTime);
        } else {
            int size = decompress(attributes & CODEC, (byte) 2, data, at + RECORDS_AT, end);
            records(scratch, 0, size, count, offset, timestamp, isAppendTime);
        }
    }

    private void records(
            byte[] data, int start, int limit, int count, long offset, long timestamp, boolean isAppendTime)
            throws IOException {
        long sum = 0;
        position = start;
        for (int record = 0; record < count; record++) {
            int size = varint(data);
            int end = position + size;
            position++;
            long delta = varlong(data);
            long time = isAppendTime ? timestamp : timestamp + delta;
            long here = offset + varint(data);
            int keySize = varint(data);
            int key = position;
            position += Math.max(keySize, 0);
            int valueSize = varint(data);
            int value = position;
            position += Math.max(valueSize, 0);
            int headers = varint(data);
            for (int header = 0; header < headers; header++) {
                int nameSize = varint(data);
                position += nameSize;
                int headerSize = varint(data);
                position += Math.max(headerSize, 0);
            }
            if (position != end || size < 0) {
                throw new IOException("a record does not end where its size says");
            }
            sum += here + time + keySize + valueSize;
            if (contents != null) {
                contents.add(here, time, keySize, valueSize,
                    edges(data, key, keySize) | edges(data, value, valueSize) << 16, headers);
            }
        }
        if (position != limit) {
            throw new IOException("a batch does not end behind its records");
        }
        total += sum;
    }

    private int varint(byte[] data) {
        int low = data[position++];
        if (low >= 0) {
            return low >>> 1 ^ -(low & 1);
        }
        long all = more(data, low & 0x7f);
        return (int) (all >>> 1 ^ -(all & 1));
    }

    private long varlong(byte[] data) {
        int low = data[position++];
        if (low >= 0) {
            return low >>> 1 ^ -(low & 1);
        }
        long all = more(data, low & 0x7f);
        return all >>> 1 ^ -(all & 1);
    }

    private long more(byte[] data, long low) {
        long found = low;
        for (int shift = 7;; shift += 7) {
            byte next = data[position++];
            found |= (next & 0x7fL) << shift;
            if (next >= 0) {
                return found;
            }
        }
    }

    // -- magic 0 and 1 ----------------------------------------------------------------------------------------------

    private void message(byte[] data, int at, int end) throws IOException {
        verify(ieee, data, at + MAGIC_AT, end, (int) INT.get(data, at + 12));
        int attributes = data[at + ATTRIBUTES_AT];
        byte magic = data[at + MAGIC_AT];
        if ((attributes & CODEC) == 0) {
            found(data, at, (long) LONG.get(data, at), magic == 0 ? -1 : (long) LONG.get(data, at + 18));
            return;
        }
        int value = value(data, at);
        int size = decompress(attributes & CODEC, magic, data, value, end);
        long base = (long) LONG.get(data, at);
        int last = 0;
        for (int next = 0; next < size; next += PREFIX + (int) INT.get(scratch, next + 8)) {
            last = next;
        }
        base = magic == 0 ? 0 : base - (long) LONG.get(scratch, last);
        boolean isAppendTime = magic > 0 && (attributes & LOG_APPEND_TIME) != 0;
        for (int next = 0; next < size; next += PREFIX + (int) INT.get(scratch, next + 8)) {
            long time = magic == 0 ? -1 : (long) LONG.get(isAppendTime ? data : scratch, (isAppendTime ? at : next) + 18);
            found(scratch, next, base + (long) LONG.get(scratch, next), time);
        }
    }

    private static int keyAt(byte[] data, int at) {
        return at + (data[at + MAGIC_AT] == 0 ? 18 : 26);
    }

    private static int value(byte[] data, int at) {
        int key = keyAt(data, at);
        return key + 8 + Math.max((int) INT.get(data, key), 0);
    }

    private void found(byte[] data, int at, long offset, long time) {
        int key = keyAt(data, at) + 4;
        int keySize = (int) INT.get(data, key - 4);
        int value = key + 4 + Math.max(keySize, 0);
        int valueSize = (int) INT.get(data, value - 4);
        total += offset + time + keySize + valueSize;
        if (contents != null) {
            contents.add(offset, time, keySize, valueSize,
                edges(data, key, keySize) | edges(data, value, valueSize) << 16, 0);
        }
    }

    // -- both -------------------------------------------------------------------------------------------------------

    private static void verify(Checksum checksum, byte[] data, int start, int end, int stored) throws IOException {
        checksum.reset();
        checksum.update(data, start, end - start);
        if ((int) checksum.getValue() != stored) {
            throw new IOException("a CRC is wrong");
        }
    }

    private int decompress(int codec, byte magic, byte[] data, int start, int end) throws IOException {
        if (codecs[codec] == null) {
            codecs[codec] = Compression.of(CompressionType.forId(codec)).build();
        }
        int size = 0;
        ByteBuffer compressed = ByteBuffer.wrap(data, start, end - start);
        try (InputStream stream = codecs[codec].wrapForInput(compressed, magic, buffers)) {
            for (int more = 0; more >= 0; size += Math.max(more, 0)) {
                if (size == scratch.length) {
                    scratch = Arrays.copyOf(scratch, 2 * size);
                }
                more = stream.read(scratch, size, scratch.length - size);
            }
        }
        return size;
    }

    private static long edges(byte[] data, int start, int size) {
        return size <= 0 ? 0 : data[start] & 0xff | (data[start + size - 1] & 0xff) << 8;
    }

    @Override
    public void close() {
        buffers.close();
    }
}
