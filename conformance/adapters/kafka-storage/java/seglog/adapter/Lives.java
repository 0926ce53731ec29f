package seglog.adapter;

import static seglog.adapter.Batches.number;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.CleanableOffsets;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import seglog.kafka.StandingTime;

/** Logs that are written to, cut back by retention, and compacted. */
final class Lives {
    private static final int BYTES_PER_KEY = 24;
    private static final int MANY_KEYS = 100_000;
    private static final int BUFFER_SIZE = 1 << 20;
    private static final double FULL = 1.0;

    private Lives() {
    }

    /** What stands in the files after some steps, and what each of them came to. */
    static void write(JsonNode request, ObjectNode answer) throws Exception {
        JsonNode options = request.path("options");
        StandingTime time = new StandingTime(number(request, "now", 0));
        try (Scratch scratch = Scratch.of(request)) {
            try (Opened opened = Opened.at(scratch.partition, request, number(options, "logStartOffset", 0),
                    number(options, "recoveryPoint", 0), options.path("cleanShutdown").asBoolean(false), time)) {
                ArrayNode results = answer.putArray("steps");
                for (JsonNode step : request.path("steps")) {
                    time.set(number(step, "now", time.milliseconds()));
                    if (!take(step, opened.log, scratch, results.addObject())) {
                        answer.removeAll();
                        answer.putObject("skip").put("feature", "step:" + step.path("do").asText());
                        return;
                    }
                }
                answer.put("nextOffset", Long.toString(opened.log.logEndOffset()))
                    .put("logStartOffset", Long.toString(opened.log.logStartOffset()));
                opened.log.updateHighWatermark(opened.log.logEndOffset()); // of the only replica
                answer.put("lastStableOffset", Long.toString(opened.log.lastStableOffset()));
            }
            scratch.put(answer.putObject("files"));
            scratch.putDeleted(answer.putArray("deleted"));
        }
    }

    /** One step; false where a log alone cannot do it. */
    private static boolean take(JsonNode step, UnifiedLog log, Scratch scratch, ObjectNode result) throws IOException {
        if (step.has("fails")) {
            return false;
        }
        switch (step.path("do").asText()) {
            case "append" -> append(step, log, result);
            case "lead" -> log.assignEpochStartOffset(step.path("leaderEpoch").asInt(), log.logEndOffset());
            case "roll" -> result.put("baseOffset", Long.toString(log.roll().baseOffset()));
            case "flush" -> {
                log.flush(false);
                result.put("recoveryPoint", Long.toString(log.recoveryPoint()));
            }
            case "retain" -> retain(log, Long.MAX_VALUE, result);
            case "look" -> scratch.put(result.putObject("files"));
            default -> {
                return false;
            }
        }
        return true;
    }

    private static void append(JsonNode step, UnifiedLog log, ObjectNode result) throws IOException {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Serving.unhexed(step.get("records"))));
        LogSegment active = log.activeSegment();
        long end = log.logEndOffset();
        LogAppendInfo info;
        try {
            info = step.path("as").asText("leader").equals("leader")
                ? Release.append(log, records, step.path("leaderEpoch").asInt(0), Appends.origin(step))
                : log.appendAsFollower(records, step.path("leaderEpoch").asInt(Integer.MAX_VALUE));
        } catch (KafkaException | IllegalArgumentException error) {
            result.putObject("reject").put("class", "policy").put("error", error.getClass().getName())
                .put("message", String.valueOf(error.getMessage()));
            return;
        }
        result.put("firstOffset", Long.toString(info.firstOffset())).put("lastOffset", Long.toString(info.lastOffset()))
            .put("recoveryPoint", Long.toString(log.recoveryPoint())).put("isDuplicate", log.logEndOffset() == end);
        if (log.activeSegment() == active) {
            result.putNull("rolled");
        }
    }

    private static void retain(UnifiedLog log, long highWatermark, ObjectNode result) throws IOException {
        TreeSet<Long> before = bases(log);
        log.updateHighWatermark(Math.min(highWatermark, log.logEndOffset()));
        log.deleteOldSegments();
        before.removeAll(bases(log));
        ArrayNode segments = result.putArray("segments");
        before.forEach(base -> segments.add(Long.toString(base)));
        result.put("logStartOffset", Long.toString(log.logStartOffset()));
    }

    private static TreeSet<Long> bases(UnifiedLog log) {
        TreeSet<Long> found = new TreeSet<>();
        for (LogSegment segment : log.logSegments()) {
            found.add(segment.baseOffset());
        }
        return found;
    }

    /** What retention leaves of a log that was closed cleanly. */
    static void retain(JsonNode request, ObjectNode answer) throws Exception {
        try (Scratch scratch = Scratch.of(request)) {
            try (Opened opened = opened(scratch, request)) {
                if (request.path("options").has("copiedOffset")) {
                    Release.copied(opened.log, number(request.path("options"), "copiedOffset", 0));
                }
                retain(opened.log, number(request.path("options"), "highWatermark", Long.MAX_VALUE), answer);
                answer.put("nextOffset", Long.toString(opened.log.logEndOffset()));
            }
            scratch.put(answer.putObject("files"));
            scratch.putDeleted(answer.putArray("deleted"));
        }
    }

    private static Opened opened(Scratch scratch, JsonNode request) throws IOException {
        JsonNode options = request.path("options");
        return Opened.at(scratch.partition, request, number(options, "logStartOffset", 0),
            number(options, "recoveryPoint", 0), true, new StandingTime(number(request, "now", 0)));
    }

    /** What the cleaner leaves of a log that was closed cleanly. */
    static void compact(JsonNode request, ObjectNode answer) throws Exception {
        JsonNode options = request.path("options");
        StandingTime time = new StandingTime(number(request, "now", 0));
        try (Scratch scratch = Scratch.of(request)) {
            try (Opened opened = opened(scratch, request)) {
                UnifiedLog log = opened.log;
                log.updateHighWatermark(Math.min(number(options, "highWatermark", Long.MAX_VALUE), log.logEndOffset()));
                clean(log, options, time, answer);
            }
            scratch.put(answer.putObject("files"));
            scratch.putDeleted(answer.putArray("deleted"));
            scratch.putModified(answer.putObject("modified"));
            if (options.path("batches").asBoolean(false)) {
                putBatches(scratch, answer.putObject("batches"));
            }
        }
    }

    private static void putBatches(Scratch scratch, ObjectNode batches) throws IOException {
        for (Path path : scratch.files()) {
            if (path.toString().endsWith(".log")) {
                ObjectNode found = Serving.JSON.createObjectNode();
                MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(path)));
                Batches.decode(records.batches(), records.buffer(), true, found);
                batches.set(path.getFileName().toString(), found.get("batches"));
            }
        }
    }

    private static void clean(UnifiedLog log, JsonNode options, StandingTime time, ObjectNode answer) throws Exception {
        Optional<Long> checkpointed =
            options.has("cleanerOffset") ? Optional.of(number(options, "cleanerOffset", 0)) : Optional.empty();
        CleanableOffsets offsets = CleanableOffsets.of(log, checkpointed, time.milliseconds());
        LogToClean dirty = new LogToClean(log, offsets.firstDirty(), offsets.firstUncleanable(), false);
        answer.put("firstDirtyOffset", Long.toString(dirty.firstDirtyOffset()))
            .put("firstUncleanableOffset", Long.toString(dirty.firstUncleanableOffset()));
        ArrayNode groups = Serving.JSON.createArrayNode();
        if (dirty.cleanableBytes() > 0) {
            SkimpyOffsetMap map = new SkimpyOffsetMap(options.path("mostKeys").asInt(MANY_KEYS) * BYTES_PER_KEY);
            Throttler throttler = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "none", "none", time);
            Cleaner cleaner =
                new Cleaner(0, map, BUFFER_SIZE, Integer.MAX_VALUE, FULL, throttler, time, partition -> { }) {
                    @Override
                    public List<List<LogSegment>> groupSegmentsBySize(List<LogSegment> segments, int size, int indexSize,
                            long firstUncleanable) throws IOException {
                        List<List<LogSegment>> found = super.groupSegmentsBySize(segments, size, indexSize, firstUncleanable);
                        found.forEach(group -> putBases(group, groups.addArray()));
                        return found;
                    }
                };
            answer.put("endOffset", Long.toString(cleaner.doClean(dirty, time.milliseconds()).getKey()));
        }
        if (dirty.cleanableBytes() == 0 || !groups.isEmpty()) {
            answer.set("groups", groups);
        }
    }

    private static void putBases(List<LogSegment> segments, ArrayNode bases) {
        segments.forEach(segment -> bases.add(Long.toString(segment.baseOffset())));
    }
}
