package seglog.adapter;

import static seglog.adapter.Batches.number;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;

/** Batches from their description, by {@code MemoryRecords.builder}. */
final class Encoding {
    private static final int SPARE = 1 << 12;
    private static final int EPOCH_POSITION = 2;

    private Encoding() {
    }

    static void encode(JsonNode request, ObjectNode answer) throws Exception {
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        for (JsonNode batch : request.path("batches")) {
            if (batch.hasNonNull("deleteHorizonMs")) {
                throw new Serving.Skip("its builder sets no delete horizon");
            }
            data.write(batch.path("records").isEmpty() ? empty(batch) : filled(batch));
        }
        answer.put("data", Serving.HEX.formatHex(data.toByteArray()));
    }

    private static byte[] empty(JsonNode batch) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        long last = number(batch, "lastOffset", number(batch, "nextOffset", 1) - 1);
        if (!batch.path("codec").asText("none").equals("none")) {
            throw new Serving.Skip("an empty batch is not compressed");
        }
        DefaultRecordBatch.writeEmptyHeader(buffer, (byte) 2, number(batch, "producerId", -1),
            (short) number(batch, "producerEpoch", -1), (int) number(batch, "baseSequence", -1),
            number(batch, "baseOffset", 0), last, (int) number(batch, "partitionLeaderEpoch", -1), timestampType(batch),
            number(batch, "maxTimestamp", -1), batch.path("isTransactional").asBoolean(), batch.path("isControl").asBoolean());
        return buffer.array();
    }

    private static TimestampType timestampType(JsonNode batch) {
        return TimestampType.forName(batch.path("timestampType").asText("CreateTime"));
    }

    private static byte[] filled(JsonNode batch) throws Exception {
        JsonNode records = batch.path("records");
        long last = number(records.get(records.size() - 1), "offset", 0);
        MemoryRecordsBuilder builder = builder(batch, ByteBuffer.allocate(batch.toString().length() + SPARE));
        for (JsonNode record : records) {
            append(builder, batch, record);
        }
        if (number(batch, "lastOffset", last) != last) {
            builder.overrideLastOffset(number(batch, "lastOffset", last));
        }
        MemoryRecords built = builder.build();
        return Serving.HEX.parseHex(Serving.hexed(built.buffer()));
    }

    private static void append(MemoryRecordsBuilder builder, JsonNode batch, JsonNode record) {
        byte[] key = Serving.unhexed(record.get("key"));
        byte[] value = Serving.unhexed(record.get("value"));
        long timestamp = number(record, "timestamp", -1);
        if (batch.path("isControl").asBoolean()) {
            appendControl(builder, ByteBuffer.wrap(key), ByteBuffer.wrap(value), timestamp);
            return;
        }
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.path("headers")) {
            String name = new String(Serving.unhexed(header.get(0)), StandardCharsets.UTF_8);
            headers.add(new RecordHeader(name, Serving.unhexed(header.get(1))));
        }
        builder.appendWithOffset(number(record, "offset", 0), timestamp, key, value, headers.toArray(new Header[0]));
    }

    private static void appendControl(MemoryRecordsBuilder builder, ByteBuffer key, ByteBuffer value, long timestamp) {
        ControlRecordType type = ControlRecordType.parse(key.duplicate());
        if (type != ControlRecordType.ABORT && type != ControlRecordType.COMMIT) {
            throw new Serving.Skip("only end markers are built from their fields");
        }
        builder.appendEndTxnMarker(timestamp, new EndTransactionMarker(type, value.getInt(EPOCH_POSITION)));
    }

    /** Releases before 3.8 take a type of compression, later ones a compression. */
    private static MemoryRecordsBuilder builder(JsonNode batch, ByteBuffer buffer) throws Exception {
        TimestampType type = timestampType(batch);
        CompressionType codec = CompressionType.forName(batch.path("codec").asText("none").toLowerCase(Locale.ROOT));
        long appendTime = type == TimestampType.LOG_APPEND_TIME ? number(batch, "maxTimestamp", -1) : -1;
        for (Method method : MemoryRecords.class.getMethods()) {
            Class<?>[] types = method.getParameterTypes();
            if (method.getName().equals("builder") && types.length == 12) {
                Object compression = types[2] == CompressionType.class ? codec : compression(types[2], codec);
                return (MemoryRecordsBuilder) method.invoke(null, buffer, (byte) number(batch, "magic", 2), compression,
                    type, number(batch, "baseOffset", 0), appendTime, number(batch, "producerId", -1),
                    (short) number(batch, "producerEpoch", -1), (int) number(batch, "baseSequence", -1),
                    batch.path("isTransactional").asBoolean(), batch.path("isControl").asBoolean(),
                    (int) number(batch, "partitionLeaderEpoch", -1));
            }
        }
        throw new Serving.Skip("this release has another builder");
    }

    private static Object compression(Class<?> compression, CompressionType codec) throws Exception {
        Object building = compression.getMethod("of", CompressionType.class).invoke(null, codec);
        return building.getClass().getMethod("build").invoke(building);
    }
}
