package seglog.adapter;

import static seglog.adapter.Batches.number;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.errors.RecordBatchTooLargeException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.TransactionIndex;
import seglog.kafka.StandingTime;

/** One append by a leader or a follower: whether it is accepted, and what stands in the files then. */
final class Appends {
    private static final int MAGIC_POSITION = 16;
    private static final String FIRST = "00000000000000000000";

    private Appends() {
    }

    static void validate(JsonNode request, ObjectNode answer) throws IOException {
        if (request.path("config").has("generation")) {
            throw new Serving.Skip("a release writes as its own generation does");
        }
        byte[] before = request.has("log") ? Serving.unhexed(request.get("log")) : new byte[0];
        long base = before.length > 0 ? 0 : number(request, "baseOffset", 0);
        StandingTime time = new StandingTime(number(request, "now", 0));
        try (Scratch scratch = new Scratch()) {
            if (base > 0) { // the first releases begin a log without a segment at 0
                Files.createFile(LogFileUtils.logFile(scratch.partition, base).toPath());
            }
            int abortedBefore;
            try (Opened opened = Opened.at(scratch.partition, formatted(request), base, base, true, time)) {
                if (before.length > 0) {
                    opened.log.appendAsFollower(MemoryRecords.readableRecords(ByteBuffer.wrap(before)), Integer.MAX_VALUE);
                }
                abortedBefore = aborted(scratch).size();
                request.path("leaderEpochs").forEach(
                    pair -> opened.log.assignEpochStartOffset(pair.get(0).asInt(), pair.get(1).asLong()));
                appendAny(request, opened, answer.put("accept", true));
            }
            putAborted(scratch, abortedBefore, answer.putArray("aborted"));
            putEpochs(scratch, answer.putArray("leaderEpochs"));
            putEntries(scratch, before.length, request.path("policy").asText().equals("append"), answer);
        }
    }

    /** With the format that a leader keeps messages in; since 3.0 it writes batches whatever it is told. */
    private static JsonNode formatted(JsonNode request) {
        if (!isForMessages(request) || !Release.keepsMessages()) {
            return request;
        }
        byte[] data = Serving.unhexed(request.get("data"));
        return ((ObjectNode) request.deepCopy()).put("formatVersion", data[MAGIC_POSITION] == 0 ? "0.9.0" : "0.10.2");
    }

    /** A release that writes batches alone tells of messages only what it refuses, if not for the size of its batch. */
    private static void appendAny(JsonNode request, Opened opened, ObjectNode answer) throws IOException {
        boolean isConverted = isForMessages(request) && !Release.keepsMessages();
        try {
            append(request, opened, answer);
        } catch (RecordTooLargeException | RecordBatchTooLargeException tooLarge) {
            if (!isConverted) {
                throw tooLarge;
            }
        }
        if (isConverted) {
            throw new Serving.Skip("a leader of this release writes batches alone");
        }
    }

    /** Whether a leader is given messages of magic 0 or 1. */
    private static boolean isForMessages(JsonNode request) {
        byte[] data = Serving.unhexed(request.get("data"));
        boolean isOld = data.length > MAGIC_POSITION && data[MAGIC_POSITION] < RecordBatch.MAGIC_VALUE_V2;
        return isOld && request.path("policy").asText().equals("append");
    }

    private static void append(JsonNode request, Opened opened, ObjectNode answer) throws IOException {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Serving.unhexed(request.get("data"))));
        long end = opened.log.logEndOffset();
        int epoch = request.path("leaderEpoch").asInt(request.path("policy").asText().equals("append") ? 0 : Integer.MAX_VALUE);
        LogAppendInfo info = request.path("policy").asText().equals("append")
            ? Release.append(opened.log, records, epoch, origin(request)) : opened.log.appendAsFollower(records, epoch);
        boolean isDuplicate = request.has("log") && opened.log.logEndOffset() == end;
        answer.put("duplicateOf", isDuplicate ? Long.toString(info.lastOffset()) : null);
    }

    static AppendOrigin origin(JsonNode request) {
        return AppendOrigin.valueOf(request.path("origin").asText("client").toUpperCase(Locale.ROOT).replace('-', '_'));
    }

    private static ArrayNode aborted(Scratch scratch) throws IOException {
        ArrayNode found = Serving.JSON.createArrayNode();
        File file = scratch.partition.toPath().resolve(FIRST + ".txnindex").toFile();
        if (file.exists()) {
            try (TransactionIndex index = new TransactionIndex(0, file)) {
                Release.putAborted(index.allAbortedTxns(), found);
            }
        }
        return found;
    }

    private static void putAborted(Scratch scratch, int before, ArrayNode entries) throws IOException {
        ArrayNode found = aborted(scratch);
        for (int at = before; at < found.size(); at++) {
            entries.add(found.get(at));
        }
    }

    private static void putEpochs(Scratch scratch, ArrayNode pairs) throws IOException {
        File file = LeaderEpochCheckpointFile.newFile(scratch.partition);
        if (file.exists()) {
            new LeaderEpochCheckpointFile(file, new LogDirFailureChannel(1)).read().forEach(entry ->
                pairs.addArray().add(Release.number(entry, "epoch")).add(Long.toString(Release.number(entry, "startOffset"))));
        }
    }

    private static void putEntries(Scratch scratch, int from, boolean isLeader, ObjectNode answer)
            throws IOException {
        ByteArrayOutputStream logs = new ByteArrayOutputStream();
        for (Path path : scratch.files()) {
            if (path.toString().endsWith(".log")) {
                logs.writeBytes(Files.readAllBytes(path));
            }
        }
        byte[] written = Arrays.copyOfRange(logs.toByteArray(), from, logs.size());
        ArrayNode entries = answer.putArray("entries");
        int position = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(written)).batches()) {
            byte[] data = Arrays.copyOfRange(written, position, position + batch.sizeInBytes());
            position += data.length;
            ObjectNode entry = entries.addObject().put("data", Serving.hexed(data))
                .put("firstOffset", Long.toString(firstOffset(batch, isLeader))).put("lastOffset", Long.toString(batch.lastOffset()))
                .put("maxTimestamp", Long.toString(batch.maxTimestamp()));
            Batches.decode(MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches(), ByteBuffer.wrap(data), true, entry);
            entry.remove(List.of("consumed", "tail"));
        }
    }

    /** The head of a wrapper names its last offset alone; a leader knows those inside, and a follower does not look. */
    private static long firstOffset(RecordBatch batch, boolean isLeader) {
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2) {
            return batch.baseOffset();
        }
        return isLeader ? batch.iterator().next().offset() : batch.lastOffset();
    }
}
