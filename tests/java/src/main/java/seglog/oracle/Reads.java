package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.CorruptSnapshotException;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.TransactionIndex;

/** What Kafka's classes read from the files of a directory, one object for each thing, bytes in Base64. */
final class Reads {
    private static final int BASE_TIMESTAMP_POSITION = 27;
    private static final int INDEX_SLOT = 8;
    private static final int TIME_INDEX_SLOT = 12;

    private Reads() {
    }

    /** Read every file below {@code directory} that a partition keeps. */
    static void read(JsonNode request, ObjectNode answer) throws IOException {
        Path root = Path.of(request.path("directory").asText());
        ArrayNode lines = answer.putArray("lines");
        List<Path> files;
        try (Stream<Path> walk = Files.walk(root)) {
            files = walk.filter(Files::isRegularFile).sorted().toList();
        }
        for (Path file : files) {
            readFile(file, root.relativize(file).toString().replace(File.separatorChar, '/'), lines);
        }
    }

    private static void readFile(Path path, String name, ArrayNode lines) throws IOException {
        String plain = path.getFileName().toString().replaceFirst("\\.(deleted|cleaned|swap)$", "");
        switch (plain.substring(plain.lastIndexOf('.') + 1)) {
            case "log" -> readLog(path, name, lines);
            case "checkpoint" -> readLog(path, name, lines);
            case "index" -> readIndex(path, plain, line(lines, "offsetIndex", name));
            case "timeindex" -> readTimeIndex(path, plain, line(lines, "timeIndex", name));
            case "txnindex" -> readTransactionIndex(path, plain, line(lines, "transactionIndex", name));
            case "snapshot" -> readSnapshot(path, line(lines, "producerSnapshot", name));
            default -> { }
        }
    }

    private static ObjectNode line(ArrayNode lines, String type, String file) {
        return lines.addObject().put("type", type).put("file", file);
    }

    private static void readLog(Path path, String name, ArrayNode lines) throws IOException {
        int batches = 0;
        int records = 0;
        int scanned = 0;
        String error = null;
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path));
        try (FileRecords log = FileRecords.open(path.toFile(), false)) {
            for (FileChannelRecordBatch batch : log.batches()) {
                ObjectNode line = line(lines, "batch", name);
                records += readBatch(batch, bytes, line, lines, name);
                batches++;
                scanned = batch.position() + batch.sizeInBytes();
            }
        } catch (KafkaException thrown) {
            error = thrown.getClass().getSimpleName() + ": " + thrown.getMessage();
        }
        line(lines, "logEnd", name).put("batches", batches).put("records", records).put("scannedBytes", scanned)
            .put("fileBytes", Files.size(path)).put("error", error);
    }

    private static int readBatch(
            FileChannelRecordBatch batch, ByteBuffer bytes, ObjectNode line, ArrayNode lines, String name) {
        line.put("position", batch.position()).put("sizeInBytes", batch.sizeInBytes()).put("magic", batch.magic());
        try {
            batch.ensureValid();
            putHeader(batch, bytes, line);
            int count = 0;
            for (Record record : batch) {
                putRecord(record, batch, line(lines, "record", name).put("position", batch.position()));
                count++;
            }
            return count;
        } catch (KafkaException thrown) {
            line.put("invalid", thrown.getClass().getSimpleName() + ": " + thrown.getMessage());
            return 0;
        }
    }

    private static void putHeader(FileChannelRecordBatch batch, ByteBuffer bytes, ObjectNode line) {
        line.put("baseOffset", batch.baseOffset()).put("lastOffset", batch.lastOffset())
            .put("nextOffset", batch.nextOffset()).put("crc", batch.checksum())
            .put("codec", batch.compressionType().name).put("timestampType", batch.timestampType().name)
            .put("maxTimestamp", batch.maxTimestamp()).put("recordsCount", batch.countOrNull())
            .put("producerId", batch.producerId()).put("producerEpoch", batch.producerEpoch())
            .put("baseSequence", batch.baseSequence()).put("lastSequence", batch.lastSequence())
            .put("isTransactional", batch.isTransactional()).put("isControl", batch.isControlBatch())
            .put("partitionLeaderEpoch", batch.partitionLeaderEpoch()).put("isValid", batch.isValid());
        if (batch.deleteHorizonMs().isPresent()) {
            line.put("deleteHorizonMs", batch.deleteHorizonMs().getAsLong());
        } else {
            line.putNull("deleteHorizonMs");
        }
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) {
            line.put("baseTimestamp", bytes.getLong(batch.position() + BASE_TIMESTAMP_POSITION));
        }
    }

    private static void putRecord(Record record, RecordBatch batch, ObjectNode line) {
        line.put("offset", record.offset()).put("timestamp", record.timestamp());
        line.put("key", bytes(record.key())).put("value", bytes(record.value()));
        if (record.headers().length > 0) {
            ArrayNode headers = line.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value());
            }
        }
        if (batch.hasProducerId()) {
            line.put("sequence", record.sequence());
        }
        if (batch.isControlBatch()) {
            ControlRecordType type = ControlRecordType.parse(record.key());
            line.put("control", type.name());
            if (type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT) {
                line.put("coordinatorEpoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
            }
        }
        if (batch.magic() < RecordBatch.MAGIC_VALUE_V2) {
            line.put("innerMagic", record.hasMagic(RecordBatch.MAGIC_VALUE_V1) ? 1 : 0).put("isValid", isValid(record));
        }
    }

    private static boolean isValid(Record record) {
        try {
            record.ensureValid();
            return true;
        } catch (KafkaException thrown) {
            return false;
        }
    }

    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    private static long baseOffset(String plain) {
        return Long.parseLong(plain.substring(0, plain.indexOf('.')));
    }

    private static void readIndex(Path path, String plain, ObjectNode line) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path));
        ArrayNode entries = line.put("fileBytes", bytes.capacity()).putArray("entries");
        bytes.limit(end(bytes, INDEX_SLOT));
        while (bytes.hasRemaining()) {
            entries.addArray().add(baseOffset(plain) + bytes.getInt()).add(bytes.getInt());
        }
    }

    private static void readTimeIndex(Path path, String plain, ObjectNode line) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path));
        ArrayNode entries = line.put("fileBytes", bytes.capacity()).putArray("entries");
        bytes.limit(end(bytes, TIME_INDEX_SLOT));
        while (bytes.hasRemaining()) {
            entries.addArray().add(bytes.getLong()).add(baseOffset(plain) + bytes.getInt());
        }
    }

    /** Where the last slot ends that is not zero. */
    private static int end(ByteBuffer bytes, int slot) {
        int end = bytes.capacity();
        while (end > 0 && bytes.get(end - 1) == 0) {
            end--;
        }
        return Math.min((end + slot - 1) / slot * slot, bytes.capacity() / slot * slot);
    }

    private static void readTransactionIndex(Path path, String plain, ObjectNode line) throws IOException {
        ArrayNode aborted = line.putArray("aborted");
        try (TransactionIndex index = new TransactionIndex(baseOffset(plain), path.toFile())) {
            for (AbortedTxn entry : index.allAbortedTxns()) {
                aborted.addObject().put("version", entry.version()).put("producerId", entry.producerId())
                    .put("firstOffset", entry.firstOffset()).put("lastOffset", entry.lastOffset())
                    .put("lastStableOffset", entry.lastStableOffset());
            }
        }
    }

    private static void readSnapshot(Path path, ObjectNode line) throws IOException {
        try {
            List<ProducerStateEntry> entries = ProducerStateManager.readSnapshot(path.toFile());
            ArrayNode producers = line.putArray("producers");
            entries.forEach(entry -> putProducer(entry, producers.addObject()));
        } catch (CorruptSnapshotException thrown) {
            line.put("error", thrown.getMessage());
        }
    }

    private static void putProducer(ProducerStateEntry entry, ObjectNode line) {
        line.put("producerId", entry.producerId()).put("producerEpoch", entry.producerEpoch())
            .put("coordinatorEpoch", entry.coordinatorEpoch()).put("lastTimestamp", entry.lastTimestamp());
        if (entry.currentTxnFirstOffset().isPresent()) {
            line.put("currentTxnFirstOffset", entry.currentTxnFirstOffset().getAsLong());
        } else {
            line.putNull("currentTxnFirstOffset");
        }
        ArrayNode batches = line.putArray("batches");
        entry.batchMetadata().forEach(batch -> batches.addObject().put("lastSequence", batch.lastSeq)
            .put("lastOffset", batch.lastOffset).put("offsetDelta", batch.offsetDelta)
            .put("timestamp", batch.timestamp));
    }
}
