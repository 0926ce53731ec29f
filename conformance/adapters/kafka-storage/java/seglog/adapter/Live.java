package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import seglog.kafka.StandingTime;

/** A log in a directory of the machine, which stays open between requests: what LogManager of a broker does to one log. */
final class Live {
    /** A little after the records of a workload. */
    private static final long NOW_MS = 1_700_000_000_000L + 60_000;
    private static final long BROKER_EPOCH = 1;
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);

    private static File directory;
    private static Opened opened;

    private Live() {
    }

    static void answer(JsonNode request, ObjectNode answer) throws Exception {
        ArrayNode results = answer.putArray("steps");
        for (JsonNode step : request.path("steps")) {
            ObjectNode result = results.addObject();
            try {
                take(step, result);
            } catch (KafkaException | IOException | IllegalArgumentException | IllegalStateException refused) {
                result.removeAll().putObject("reject").put("class", "other").put("message", refused.toString());
                return;
            }
        }
    }

    private static void take(JsonNode step, ObjectNode result) throws Exception {
        String what = step.path("do").asText();
        if (what.equals("open")) {
            open(step, result);
        } else if (opened == null) {
            throw new IllegalStateException("no log is open");
        }
        switch (what) {
            case "append" -> append(step, result);
            case "flush" -> opened.log.flush(false);
            case "roll" -> result.put("baseOffset", Long.toString(opened.log.roll().baseOffset()));
            case "checkpoint" -> checkpoint();
            case "retain" -> {
                opened.log.updateHighWatermark(opened.log.logEndOffset()); // of the only replica
                opened.log.deleteOldSegments();
                result.put("logStartOffset", Long.toString(opened.log.logStartOffset()));
            }
            case "read" -> {
                opened.log.updateHighWatermark(opened.log.logEndOffset());
                Partitions.readAll(opened.log, opened.log.logStartOffset(), Partitions.MAX_BYTES,
                    step.path("isolation").asText().equals("read_committed"), result.putArray("records"));
            }
            case "close" -> close();
            default -> { }
        }
    }

    /** As a broker starts: a clean end counts once, and its file goes before a log is loaded. */
    private static void open(JsonNode step, ObjectNode result) throws Exception {
        directory = new File(step.get("directory").asText());
        CleanShutdownFileHandler end = new CleanShutdownFileHandler(directory.getPath());
        boolean isClean = end.exists();
        end.delete();
        Path path = directory.toPath().resolve(PARTITION.toString());
        if (!Files.exists(path)) {
            // Not what is judged: a broker leaves the name of a new partition to the file system.
            Files.createDirectory(path);
            try (FileChannel names = FileChannel.open(directory.toPath())) {
                names.force(true);
            }
        }
        long recoveryPoint = recoveryPoints().read().getOrDefault(PARTITION, 0L);
        long start = logStarts().read().getOrDefault(PARTITION, 0L);
        opened = null;
        opened = Opened.at(path.toFile(), step, start, recoveryPoint, isClean, new StandingTime(NOW_MS));
        result.put("logStartOffset", Long.toString(opened.log.logStartOffset()))
            .put("nextOffset", Long.toString(opened.log.logEndOffset()));
    }

    private static void append(JsonNode step, ObjectNode result) throws IOException {
        UnifiedLog log = opened.log;
        long end = log.logEndOffset();
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Serving.unhexed(step.get("data"))));
        LogAppendInfo info = Release.append(log, records, 0, Appends.origin(step));
        if (step.path("acks").asText().equals("flushed")) {
            log.flush(false);
        }
        result.put("firstOffset", Long.toString(info.firstOffset())).put("lastOffset", Long.toString(info.lastOffset()))
            .put("isDuplicate", log.logEndOffset() == end);
    }

    private static void checkpoint() throws IOException {
        recoveryPoints().write(Map.of(PARTITION, opened.log.recoveryPoint()));
        long start = opened.log.logStartOffset();
        boolean isInside = start > opened.log.logSegments().iterator().next().baseOffset();
        logStarts().write(isInside ? Map.of(PARTITION, start) : Map.of());
    }

    /** As a broker stops; before 4.4 it did not trim the indexes before it flushed. */
    private static void close() throws Exception {
        Release.prepareForClose(opened.log);
        opened.log.flush(true);
        opened.log.close();
        checkpoint();
        new CleanShutdownFileHandler(directory.getPath()).write(BROKER_EPOCH);
        opened = null;
    }

    private static OffsetCheckpointFile recoveryPoints() throws IOException {
        return new OffsetCheckpointFile(new File(directory, "recovery-point-offset-checkpoint"), new LogDirFailureChannel(1));
    }

    private static OffsetCheckpointFile logStarts() throws IOException {
        return new OffsetCheckpointFile(new File(directory, "log-start-offset-checkpoint"), new LogDirFailureChannel(1));
    }
}
