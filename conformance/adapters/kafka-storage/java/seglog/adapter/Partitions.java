package seglog.adapter;

import static seglog.adapter.Batches.number;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.TimestampOffset;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import seglog.kafka.InlineScheduler;
import seglog.kafka.StandingTime;

/** Whole partition directories, and the index files of a segment. */
final class Partitions {
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    static final int MAX_BYTES = 1 << 20;
    private static final int DAY_MS = 24 * 60 * 60 * 1000;

    private Partitions() {
    }

    /** The indexes that recovery builds. */
    static void index(JsonNode request, ObjectNode answer) throws IOException {
        long base = number(request, "baseOffset", 0);
        StandingTime time = new StandingTime(0);
        try (Scratch scratch = new Scratch()) {
            Files.write(LogFileUtils.logFile(scratch.partition, base).toPath(), Serving.unhexed(request.get("data")));
            ProducerStateManager producers = new ProducerStateManager(
                PARTITION, scratch.partition, DAY_MS, new ProducerStateManagerConfig(DAY_MS, false), time);
            LeaderEpochFileCache epochs = Release.epochs(PARTITION, new LeaderEpochCheckpointFile(
                LeaderEpochCheckpointFile.newFile(scratch.partition), new LogDirFailureChannel(1)), new InlineScheduler());
            try (LogSegment segment =
                    LogSegment.open(scratch.partition, base, Opened.config(request), time, true, 0, false, "")) {
                Release.recover(segment, producers, epochs);
            }
            ObjectNode files = answer.putObject("files");
            for (var path : scratch.files()) {
                String name = path.getFileName().toString();
                String suffix = name.substring(Math.max(name.indexOf('.'), 0));
                if (suffix.equals(".index") || suffix.equals(".timeindex") || suffix.equals(".txnindex")) {
                    files.put(suffix, Serving.hexed(Files.readAllBytes(path)));
                }
            }
        }
    }

    static void lookup(JsonNode request, ObjectNode answer) throws IOException {
        answer.putNull("found");
        if (request.has("fromOffset") || request.has("newest")) {
            TransactionFiles.lookup(request, answer);
            return;
        }
        try (Scratch scratch = Scratch.of(request); Opened opened = Opened.clean(scratch, request)) {
            List<LogSegment> segments = opened.log.logSegments();
            if (request.has("offset")) {
                byOffset(segments, number(request, "offset", 0), answer);
            } else {
                byTimestamp(segments, number(request, "timestamp", 0), opened, answer);
            }
        }
    }

    private static void byOffset(List<LogSegment> segments, long offset, ObjectNode answer) throws IOException {
        Optional<LogSegment> floor = segments.stream().filter(segment -> segment.baseOffset() <= offset)
            .max(Comparator.comparingLong(LogSegment::baseOffset));
        if (floor.isPresent() && putPlace(segments, offset, answer)) {
            OffsetPosition entry = floor.get().offsetIndex().lookup(offset);
            ((ObjectNode) answer.get("found")).putObject("entry").put("offset", Long.toString(entry.indexKey()))
                .put("position", (int) entry.indexValue());
        }
    }

    /** The first batch that ends at an offset or above, in its segment or a later one. */
    private static boolean putPlace(List<LogSegment> segments, long offset, ObjectNode answer) throws IOException {
        for (LogSegment segment : segments) {
            FileRecords.LogOffsetPosition found = segment.readNextOffset() > offset ? segment.translateOffset(offset) : null;
            if (found != null) {
                ObjectNode place = answer.withObject("found");
                place.put("position", found.position)
                    .put("baseOffset", Long.toString(Release.baseOffset(segment.log(), found.position)));
                return true;
            }
        }
        return false;
    }

    private static void byTimestamp(List<LogSegment> segments, long timestamp, Opened opened, ObjectNode answer)
            throws IOException {
        if (timestamp < 0) {
            opened.log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt().ifPresent(
                found -> putSpecial(found, answer));
            return;
        }
        for (LogSegment segment : segments) {
            if (segment.largestTimestamp() >= timestamp) {
                Optional<FileRecords.TimestampAndOffset> found = 
                    Release.offsetByTimestamp(segment, timestamp, opened.log.logStartOffset());
                if (found.isPresent()) {
                    TimestampOffset entry = segment.timeIndex().lookup(timestamp);
                    putPlace(segments, found.get().offset, answer);
                    answer.withObject("found").put("offset", Long.toString(found.get().offset))
                        .put("timestamp", Long.toString(found.get().timestamp)).putObject("entry")
                        .put("timestamp", Long.toString(entry.indexKey()))
                        .put("offset", Long.toString(entry.indexValue()));
                    return;
                }
            }
        }
    }

    /** Where there is none of the kind, Kafka's classes name an offset below all. */
    private static void putSpecial(FileRecords.TimestampAndOffset found, ObjectNode answer) {
        if (found.offset >= 0) {
            answer.withObject("found").put("offset", Long.toString(found.offset))
                .put("timestamp", Long.toString(found.timestamp));
        }
    }

    /** One fetch, or all where no offset is named, and what a consumer makes of them. */
    static void read(JsonNode request, ObjectNode answer) throws IOException {
        boolean committed = request.path("isolation").asText().equals("read_committed");
        int maxBytes = request.path("maxBytes").asInt(MAX_BYTES);
        ArrayNode records = answer.putArray("records");
        try (Scratch scratch = Scratch.of(request); Opened opened = Opened.clean(scratch, request)) {
            opened.log.updateHighWatermark(opened.log.logEndOffset());
            long offset = number(request, "offset", opened.log.logStartOffset());
            long next = request.has("offset") ? deliver(opened.log, offset, maxBytes, committed, records)
                : readAll(opened.log, offset, maxBytes, committed, records);
            answer.put("nextOffset", Long.toString(next));
        }
    }

    /** What a consumer gets that reads on until there is no more; the next offset. */
    static long readAll(UnifiedLog log, long from, int maxBytes, boolean committed, ArrayNode records) throws IOException {
        long offset = from;
        long next = deliver(log, offset, maxBytes, committed, records);
        while (next > offset) {
            offset = next;
            next = deliver(log, offset, maxBytes, committed, records);
        }
        return next;
    }

    private static long deliver(UnifiedLog log, long from, int maxBytes, boolean committed, ArrayNode records)
            throws IOException {
        FetchIsolation isolation = committed ? FetchIsolation.TXN_COMMITTED : FetchIsolation.LOG_END;
        return deliver(log.read(from, maxBytes, isolation, true), committed, from, records);
    }

    private static long deliver(FetchDataInfo found, boolean committed, long from, ArrayNode records) {
        Deque<AbortedTransaction> aborted = new ArrayDeque<>(found.abortedTransactions.orElse(List.of()));
        Set<Long> producers = new HashSet<>();
        long next = from;
        for (RecordBatch batch : found.records.batches()) {
            while (!aborted.isEmpty() && aborted.peek().firstOffset() <= batch.lastOffset()) {
                producers.add(aborted.poll().producerId());
            }
            batch.ensureValid();
            next = batch.nextOffset();
            if (batch.isControlBatch()) {
                if (isAbort(batch)) {
                    producers.remove(batch.producerId());
                }
            } else if (!committed || !batch.isTransactional() || !producers.contains(batch.producerId())) {
                for (Record record : batch) {
                    if (record.offset() >= from) {
                        records.add(Batches.record(record, batch));
                    }
                }
            }
        }
        return next;
    }

    private static boolean isAbort(RecordBatch batch) {
        var records = batch.iterator();
        return records.hasNext() && ControlRecordType.parse(records.next().key()) == ControlRecordType.ABORT;
    }

    /** What is left after a start; a clean one where the request says so. */
    static void recover(JsonNode request, ObjectNode answer) throws IOException {
        JsonNode options = request.path("options");
        try (Scratch scratch = Scratch.of(request)) {
            long before = scratch.logSize();
            try (Opened opened = Opened.at(scratch.partition, request, number(options, "logStartOffset", 0),
                    number(options, "recoveryPoint", 0), options.path("cleanShutdown").asBoolean(false), new StandingTime(0))) {
                answer.put("nextOffset", Long.toString(opened.log.logEndOffset()));
            }
            answer.put("truncatedBytes", Math.max(before - scratch.logSize(), 0));
            scratch.put(answer.putObject("files"));
        }
    }

    static void truncate(JsonNode request, ObjectNode answer) throws IOException {
        try (Scratch scratch = Scratch.of(request)) {
            if (scratch.files().stream().noneMatch(path -> path.toString().endsWith(".log"))) {
                throw new Serving.Skip("what has no segment is begun by opening it");
            }
            try (Opened opened = Opened.clean(scratch, request)) {
                opened.log.truncateTo(number(request, "offset", 0));
                answer.put("nextOffset", Long.toString(opened.log.logEndOffset()));
            }
            scratch.put(answer.putObject("files"));
        }
    }
}
