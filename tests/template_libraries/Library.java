import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.zip.CRC32C;

/** An encoder, an index builder and a lookup, with which tests fill in the template: batches of magic 2 alone. */
class Library {
    static byte[] encode(List<Map<String, Object>> batches) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (Map<String, Object> batch : batches) all.write(encoded(batch));
        return all.toByteArray();
    }

    static byte[] encoded(Map<String, Object> batch) throws IOException {
        List<Map<String, Object>> records = Adapter.list(batch.get("records"));
        boolean isUsual = Adapter.number(batch.get("producerId")) < 0 && batch.get("deleteHorizonMs") == null
            && !"true".equals(batch.get("isControl"));
        if (Adapter.number(batch.get("magic")) != 2 || !"none".equals(batch.get("codec")) || records.isEmpty() || !isUsual)
            throw new Adapter.Skip("it writes no such batches");
        long base = Adapter.number(batch.get("baseOffset")), first = Adapter.number(batch.get("baseTimestamp"));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream tail = new DataOutputStream(bytes);
        tail.writeShort("LogAppendTime".equals(batch.get("timestampType")) ? 8 : 0);
        tail.writeInt((int) (Adapter.number(batch.get("lastOffset")) - base));
        tail.writeLong(first);
        tail.writeLong(Adapter.number(batch.get("maxTimestamp")));
        tail.writeLong(-1);
        tail.writeShort(-1);
        tail.writeInt(-1);
        tail.writeInt(records.size());
        for (Map<String, Object> record : records) {
            ByteArrayOutputStream body = new ByteArrayOutputStream();
            body.write(0);
            varint(body, Adapter.number(record.get("timestamp")) - first);
            varint(body, Adapter.number(record.get("offset")) - base);
            field(body, Adapter.bytes(record.get("key")));
            field(body, Adapter.bytes(record.get("value")));
            List<List<Object>> headers = Adapter.list(record.get("headers"));
            varint(body, headers.size());
            for (List<Object> pair : headers)
                for (Object one : pair) field(body, Adapter.bytes(one));
            varint(tail, body.size());
            body.writeTo(tail);
        }
        CRC32C sum = new CRC32C();
        sum.update(bytes.toByteArray());
        ByteBuffer out = ByteBuffer.allocate(21 + bytes.size());
        out.putLong(base).putInt(9 + bytes.size()).putInt((int) Adapter.number(batch.get("partitionLeaderEpoch")));
        return out.put((byte) 2).putInt((int) sum.getValue()).put(bytes.toByteArray()).array();
    }

    static void varint(OutputStream out, long number) throws IOException {
        long left = (number << 1) ^ (number >> 63);
        for (; (left & ~127L) != 0; left >>>= 7) out.write((int) (left & 127) | 128);
        out.write((int) left);
    }

    static void field(OutputStream out, byte[] data) throws IOException {
        varint(out, data == null ? -1 : data.length);
        if (data != null) out.write(data);
    }

    static Map<String, byte[]> index(byte[] log, long baseOffset, long intervalBytes) {
        ByteBuffer data = ByteBuffer.wrap(log), offsets = ByteBuffer.allocate(log.length), times = ByteBuffer.allocate(log.length);
        long since = 0, largest = -1, newest = -1, written = -1;
        for (int at = 0; at < log.length; ) {
            if (log[at + 16] != 2 || (log[at + 22] & 0x27) != 0) throw new Adapter.Skip("it reads no such batches");
            int size = 12 + data.getInt(at + 8);
            long last = data.getLong(at) + data.getInt(at + 23), stamp = data.getLong(at + 35);
            if (stamp > largest) {
                largest = stamp;
                newest = last;
            }
            if (since > intervalBytes) {
                offsets.putInt((int) (last - baseOffset)).putInt(at);
                times.putLong(largest).putInt((int) (newest - baseOffset));
                since = 0;
                written = largest;
            }
            since += size;
            at += size;
        }
        if (largest > written) times.putLong(largest).putInt((int) (newest - baseOffset));
        return Map.of(
            ".index", Arrays.copyOf(offsets.array(), offsets.position()),
            ".timeindex", Arrays.copyOf(times.array(), times.position()));
    }

    static long[] lookup(Path directory, long offset) throws IOException {
        File[] logs = directory.toFile().listFiles((parent, name) -> name.endsWith(".log"));
        Arrays.sort(logs);
        for (int i = 0; i < logs.length; i++) {
            if (i + 1 < logs.length && Long.parseLong(logs[i + 1].getName().substring(0, 20)) <= offset) continue;
            ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(logs[i].toPath()));
            for (int at = 0; at + 17 <= data.limit(); at += 12 + data.getInt(at + 8)) {
                long first = data.getLong(at), last = data.get(at + 16) == 2 ? first + data.getInt(at + 23) : first;
                if (last >= offset) return new long[] {at, first};
            }
        }
        return null;
    }
}
