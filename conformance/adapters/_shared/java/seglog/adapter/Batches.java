package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/** Batches and records as Kafka's classes tell of them. */
final class Batches {
    private static final int BASE_TIMESTAMP_POSITION = 27;

    private Batches() {
    }

    /** Go over batches as a consumer does, checksums included where they are asked for, up to the first refusal. */
    static <T extends RecordBatch> void decode(
            Iterable<T> batches, ByteBuffer bytes, boolean checksums, ObjectNode answer) {
        decode(batches, bytes, checksums, null, answer);
    }

    /** The same; where there is a summary, records go into that alone. */
    static <T extends RecordBatch> void decode(
            Iterable<T> batches, ByteBuffer bytes, boolean checksums, Summary summary, ObjectNode answer) {
        ArrayNode delivered = summary == null ? answer.putArray("batches") : null;
        int position = 0;
        try {
            for (RecordBatch batch : batches) {
                if (checksums) {
                    batch.ensureValid();
                }
                if (summary == null) {
                    fill(delivered.addObject(), batch, bytes, position, checksums);
                } else {
                    summary.startBatch();
                    read(batch, checksums, record -> summary.add(record(record, batch)));
                }
                position += batch.sizeInBytes();
            }
            answer.put("consumed", position);
            if (position < bytes.limit()) {
                answer.putObject("tail").put("at", position);
            } else {
                answer.putNull("tail");
            }
        } catch (RuntimeException | Error thrown) {
            Serving.reject(answer, thrown);
        }
        if (summary != null) {
            answer.set("summary", summary.told());
        }
    }

    /** Records are handed out one at a time, as the classes do: those in front of an error stay in the answer. */
    private static void fill(ObjectNode line, RecordBatch batch, ByteBuffer bytes, int position, boolean checksums) {
        ArrayNode records = line.putArray("records");
        read(batch, checksums, record -> records.add(record(record, batch)));
        line.put("position", position).put("sizeInBytes", batch.sizeInBytes()).put("magic", batch.magic())
            .put("baseOffset", text(batch.baseOffset())).put("lastOffset", text(batch.lastOffset()))
            .put("nextOffset", text(batch.nextOffset())).put("crc", batch.checksum())
            .put("codec", batch.compressionType().name).put("timestampType", batch.timestampType().name)
            .put("maxTimestamp", text(batch.maxTimestamp())).put("recordsCount", batch.countOrNull())
            .put("producerId", text(batch.producerId())).put("producerEpoch", batch.producerEpoch())
            .put("baseSequence", batch.baseSequence()).put("lastSequence", batch.lastSequence())
            .put("isTransactional", batch.isTransactional()).put("isControl", batch.isControlBatch())
            .put("partitionLeaderEpoch", batch.partitionLeaderEpoch()).put("isValid", batch.isValid())
            .put("deleteHorizonMs", deleteHorizon(batch));
        line.put("baseTimestamp",
            batch.magic() < RecordBatch.MAGIC_VALUE_V2 ? null : text(bytes.getLong(position + BASE_TIMESTAMP_POSITION)));
    }

    private static void read(RecordBatch batch, boolean checksums, Consumer<Record> take) {
        try (CloseableIterator<Record> iterator = batch.streamingIterator(BufferSupplier.create())) {
            while (iterator.hasNext()) {
                Record record = iterator.next();
                if (checksums) {
                    record.ensureValid();
                }
                take.accept(record);
            }
        }
    }

    private static String text(long number) {
        return Long.toString(number);
    }

    /** Releases before 3.1 have no such method, and know of no horizon. */
    private static String deleteHorizon(RecordBatch batch) {
        try {
            Method method = RecordBatch.class.getMethod("deleteHorizonMs");
            OptionalLong found = (OptionalLong) method.invoke(batch);
            return found.isPresent() ? text(found.getAsLong()) : null;
        } catch (ReflectiveOperationException missing) {
            return null;
        }
    }

    static ObjectNode record(Record record, RecordBatch batch) {
        ObjectNode line = Serving.JSON.createObjectNode();
        line.put("offset", text(record.offset())).put("timestamp", text(record.timestamp()))
            .put("key", Serving.hexed(record.key())).put("value", Serving.hexed(record.value()));
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(Serving.hexed(header.key().getBytes(StandardCharsets.UTF_8)))
                .add(Serving.hexed(header.value()));
        }
        if (batch.producerId() >= 0) {
            line.put("sequence", record.sequence());
        }
        if (batch.isControlBatch()) {
            ControlRecordType type = ControlRecordType.parse(record.key());
            line.put("control", type.name());
            if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
                line.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
            }
        }
        return line;
    }

    static long number(JsonNode holder, String name, long missing) {
        return holder.hasNonNull(name) ? Long.parseLong(holder.get(name).asText()) : missing;
    }
}
