package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidOffsetException;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CompletedTxn;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerAppendInfo;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import seglog.kafka.InlineScheduler;
import seglog.kafka.ScratchDirectory;
import seglog.kafka.StandingTime;

/** One segment: written by appends, recovered, searched. */
final class Segments {
    static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private static final HexFormat HEX = HexFormat.of();
    private static final String INDEX_BYTES = "1048576";
    private static final StandingTime TIME = new StandingTime(0);

    private Segments() {
    }

    /** Append {@code appends}, each the batches of one append; answer with all files of the segment. */
    static void index(JsonNode request, ObjectNode answer) throws IOException {
        try (ScratchDirectory scratch = new ScratchDirectory()) {
            long base = request.path("baseOffset").asLong();
            LogSegment segment = LogSegment.open(scratch.partition, base, config(request), TIME, 0, false);
            ProducerStateManager producers = producers(scratch.partition);
            for (JsonNode append : request.path("appends")) {
                append(segment, producers, records(append));
            }
            segment.onBecomeInactiveSegment();
            segment.close();
            producers.takeSnapshot();
            putFiles(answer, scratch, base, producers.mapEndOffset());
        }
    }

    static MemoryRecords records(JsonNode hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex.asText())));
    }

    private static void append(LogSegment segment, ProducerStateManager producers, MemoryRecords records)
            throws IOException {
        Map<Long, ProducerAppendInfo> changes = new LinkedHashMap<>();
        List<CompletedTxn> completed = new ArrayList<>();
        int position = segment.size();
        for (RecordBatch batch : records.batches()) {
            if (batch.hasProducerId()) {
                Optional<LogOffsetMetadata> first = batch.isTransactional()
                    ? Optional.of(new LogOffsetMetadata(batch.baseOffset(), segment.baseOffset(), position))
                    : Optional.empty();
                changes.computeIfAbsent(batch.producerId(), id -> producers.prepareUpdate(id, AppendOrigin.REPLICATION))
                    .append(batch, first).ifPresent(completed::add);
            }
            position += batch.sizeInBytes();
        }
        Summary summary = Summary.of(records);
        Release.append(segment, records, summary);
        changes.values().forEach(producers::update);
        for (CompletedTxn transaction : completed) {
            segment.updateTxnIndex(transaction, producers.lastStableOffset(transaction));
            producers.completeTxn(transaction);
        }
        producers.updateMapEndOffset(summary.lastOffset() + 1);
    }

    /** Recover the bytes in {@code log} as a broker does; answer with what is left and the files made from it. */
    static void recover(JsonNode request, ObjectNode answer) throws IOException {
        try (ScratchDirectory scratch = new ScratchDirectory()) {
            long base = request.path("baseOffset").asLong();
            File log = LogFileUtils.logFile(scratch.partition, base);
            Files.write(log.toPath(), HEX.parseHex(request.path("log").asText()));
            LogSegment segment =
                LogSegment.open(scratch.partition, base, config(request), TIME, true, 0, false, "");
            LeaderEpochCheckpointFile epochs = new LeaderEpochCheckpointFile(
                LeaderEpochCheckpointFile.newFile(scratch.partition), new LogDirFailureChannel(1));
            ProducerStateManager producers = producers(scratch.partition);
            try {
                recover(segment, producers, new LeaderEpochFileCache(PARTITION, epochs, new InlineScheduler()), answer);
                answer.put("nextOffset", segment.readNextOffset());
            } finally {
                segment.close();
            }
            putFiles(answer, scratch, base, producers.mapEndOffset());
        }
    }

    /** As LogLoader does it: offsets that an index does not take empty the segment. */
    private static void recover(
            LogSegment segment, ProducerStateManager producers, LeaderEpochFileCache epochs, ObjectNode answer)
            throws IOException {
        try {
            answer.put("truncated", Release.recover(segment, producers, epochs));
        } catch (InvalidOffsetException | IOException thrown) {
            answer.put("truncated", segment.truncateTo(segment.baseOffset()));
            answer.put("emptied", thrown.getClass().getSimpleName());
            answer.put("message", thrown.getMessage());
        }
        producers.takeSnapshot();
    }

    private static void putFiles(ObjectNode answer, ScratchDirectory scratch, long base, long end) throws IOException {
        for (String kind : List.of("log", "index", "timeindex", "txnindex")) {
            put(answer, kind, scratch.bytes(LogFileUtils.filenamePrefixFromOffset(base) + "." + kind));
        }
        put(answer, "snapshot", scratch.bytes(LogFileUtils.filenamePrefixFromOffset(end) + ".snapshot"));
        answer.put("snapshotOffset", end);
        byte[] epochs = scratch.bytes("leader-epoch-checkpoint");
        answer.put("epochs", epochs == null ? null : new String(epochs));
    }

    private static void put(ObjectNode answer, String name, byte[] bytes) {
        answer.put(name, bytes == null ? null : HEX.formatHex(bytes));
    }

    /** Search a segment in {@code directory}, which may gain index files by it. */
    static void lookup(JsonNode request, ObjectNode answer) throws IOException {
        File directory = new File(request.path("directory").asText());
        long base = request.path("baseOffset").asLong();
        try (LogSegment segment = LogSegment.open(directory, base, config(request), TIME, true, 0, false, "")) {
            ArrayNode positions = answer.putArray("positions");
            for (JsonNode offset : request.path("offsets")) {
                FileRecords.LogOffsetPosition found = segment.translateOffset(offset.asLong());
                positions.add(found == null ? null : Oracle.JSON.createArrayNode().add(found.offset).add(found.position));
            }
            ArrayNode offsets = answer.putArray("found");
            for (JsonNode timestamp : request.path("timestamps")) {
                Optional<FileRecords.TimestampAndOffset> found = segment.findOffsetByTimestamp(timestamp.asLong(), base);
                offsets.add(found.map(it -> Oracle.JSON.createArrayNode().add(it.timestamp).add(it.offset)).orElse(null));
            }
        }
    }

    private static ProducerStateManager producers(File directory) throws IOException {
        return new ProducerStateManager(PARTITION, directory, Start.TRANSACTION_TIMEOUT_MS,
            new ProducerStateManagerConfig(Start.PRODUCER_EXPIRATION_MS, false), TIME);
    }

    /** Settings of a log: those in {@code config}, and indexes that are quick to create. */
    static LogConfig config(JsonNode request) {
        Properties properties = new Properties();
        properties.put("segment.index.bytes", INDEX_BYTES);
        request.path("config").properties().forEach(setting -> {
            String name = setting.getKey().equals("segment.bytes") ? Release.SEGMENT_BYTES : setting.getKey();
            properties.put(name, setting.getValue().asText());
        });
        return new LogConfig(properties);
    }
}
