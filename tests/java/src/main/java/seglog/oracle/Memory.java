package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

/** Batches in memory, taken apart as a consumer does it. */
final class Memory {
    private static final HexFormat HEX = HexFormat.of();
    private static final int DIGEST_OVER = 4096;

    private Memory() {
    }

    /** The batches of {@code data}; what a batch throws, and those before it, are the answer too. */
    static void decode(JsonNode request, ObjectNode answer) {
        ArrayNode batches = answer.putArray("batches");
        int position = 0;
        answer.put("ok", true);
        try {
            for (MutableRecordBatch batch : Segments.records(request.path("data")).batches()) {
                batch.ensureValid();
                batches.add(batch(batch, position));
                position += batch.sizeInBytes();
            }
        } catch (RuntimeException | Error thrown) {  // the snappy library throws errors
            ObjectNode reject = answer.put("ok", false).putObject("reject");
            reject.put("error", thrown.getClass().getSimpleName()).put("message", String.valueOf(thrown.getMessage()));
            return;
        }
        answer.put("consumed", position);
        int left = request.path("data").asText().length() / 2 - position;
        if (left == 0) {
            answer.putNull("tail");
        } else {
            answer.putObject("tail").put("at", position);
        }
    }

    private static ObjectNode batch(MutableRecordBatch batch, int position) {
        ObjectNode line = Oracle.JSON.createObjectNode();
        line.put("position", position).put("sizeInBytes", batch.sizeInBytes()).put("magic", batch.magic());
        line.put("baseOffset", batch.baseOffset()).put("lastOffset", batch.lastOffset());
        line.put("nextOffset", batch.nextOffset()).put("crc", checksum(batch));
        line.put("codec", batch.compressionType().name).put("timestampType", batch.timestampType().name);
        if (batch instanceof DefaultRecordBatch modern) {
            line.put("baseTimestamp", modern.baseTimestamp());
        } else {
            line.putNull("baseTimestamp");
        }
        line.put("maxTimestamp", batch.maxTimestamp());
        if (batch.deleteHorizonMs().isPresent()) {
            line.put("deleteHorizonMs", batch.deleteHorizonMs().getAsLong());
        } else {
            line.putNull("deleteHorizonMs");
        }
        line.put("recordsCount", batch.countOrNull()).put("producerId", batch.producerId());
        line.put("producerEpoch", batch.producerEpoch()).put("baseSequence", batch.baseSequence());
        line.put("lastSequence", batch.lastSequence()).put("isTransactional", batch.isTransactional());
        line.put("isControl", batch.isControlBatch()).put("partitionLeaderEpoch", batch.partitionLeaderEpoch());
        line.put("isValid", batch.isValid());
        ArrayNode records = line.putArray("records");
        try (CloseableIterator<Record> found = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
            while (found.hasNext()) {
                record(found.next(), batch, records.addObject());
            }
        }
        return line;
    }

    private static long checksum(RecordBatch batch) {
        return batch.checksum();
    }

    private static void record(Record record, RecordBatch batch, ObjectNode line) {
        line.put("offset", record.offset()).put("timestamp", record.timestamp());
        put(line, "key", record.key());
        put(line, "value", record.value());
        if (record.headers().length > 0) {
            ArrayNode headers = line.putArray("headers");
            for (Header header : record.headers()) {
                ArrayNode pair = headers.addArray();
                pair.add(HEX.formatHex(header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8)));
                pair.add(header.value() == null ? null : HEX.formatHex(header.value()));
            }
        }
        if (batch.magic() < RecordBatch.MAGIC_VALUE_V2) {
            line.put("isValid", isValid(record));
        }
        if (batch.hasProducerId()) {
            line.put("sequence", record.sequence());
        }
        if (batch.isControlBatch()) {
            control(record, line);
        }
    }

    private static boolean isValid(Record record) {
        try {
            record.ensureValid();
            return true;
        } catch (RuntimeException thrown) {
            return false;
        }
    }

    private static void control(Record record, ObjectNode line) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        line.put("control", type.name());
        if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
            line.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
        }
    }

    private static void put(ObjectNode line, String name, ByteBuffer bytes) {
        if (bytes == null) {
            line.putNull(name);
            return;
        }
        byte[] content = new byte[bytes.remaining()];
        bytes.duplicate().get(content);
        if (content.length <= DIGEST_OVER) {
            line.put(name, HEX.formatHex(content));
            return;
        }
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(content);
            line.putObject(name).put("bytes", content.length).put("sha256", HEX.formatHex(digest));
        } catch (NoSuchAlgorithmException thrown) {
            throw new InvalidConfigurationException(thrown.getMessage());
        }
    }
}
