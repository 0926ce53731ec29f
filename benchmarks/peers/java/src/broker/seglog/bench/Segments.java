package seglog.bench;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.Crc32C;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import seglog.kafka.InlineScheduler;
import seglog.kafka.ScratchDirectory;

/** Works of a broker's segment. The log is a link in a directory of its own, so that no index of the data changes. */
final class Segments {
    private static final TopicPartition PARTITION = new TopicPartition("bench", 0);
    private static final LogConfig CONFIG = new LogConfig(Map.of());
    private static final int TRANSACTION_TIMEOUT_MS = 900_000;
    private static final int PRODUCER_EXPIRATION_MS = 86_400_000;
    private static final int FETCH_SIZE = 1 << 20;

    private Segments() {
    }

    /** Recover, as after a crash; the number is made of the index files. */
    static Contents recover(String path, Consumer<Long> spent) throws IOException {
        Contents contents = new Contents();
        try (ScratchDirectory scratch = linked(path, false)) {
            LogSegment segment = open(scratch.partition);
            LeaderEpochCheckpointFile epochs = new LeaderEpochCheckpointFile(
                LeaderEpochCheckpointFile.newFile(scratch.partition), new LogDirFailureChannel(1));
            LeaderEpochFileCache cache = new LeaderEpochFileCache(PARTITION, epochs, new InlineScheduler());
            ProducerStateManager producers = new ProducerStateManager(PARTITION, scratch.partition,
                TRANSACTION_TIMEOUT_MS, new ProducerStateManagerConfig(PRODUCER_EXPIRATION_MS, false), Time.SYSTEM);
            long start = System.nanoTime();
            int lost = segment.recover(producers, cache);
            spent.accept(System.nanoTime() - start);
            segment.close();
            if (lost != 0) {
                throw new IOException("recovery cut off " + lost + " bytes");
            }
            contents.number = crc(scratch, "index") << 32 | crc(scratch, "timeindex");
            contents.count = 1;
        }
        return contents;
    }

    private static long crc(ScratchDirectory scratch, String kind) {
        try {
            byte[] bytes = scratch.bytes(LogFileUtils.filenamePrefixFromOffset(0) + "." + kind);
            return Crc32C.compute(bytes, 0, bytes.length);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Find each of the offsets in an open segment, or in one that is opened for each. */
    static Contents lookup(String path, JsonNode offsets, boolean cold, Consumer<Long> spent) throws IOException {
        Contents contents = new Contents();
        try (ScratchDirectory scratch = linked(path, true)) {
            LogSegment segment = cold ? null : open(scratch.partition);
            long start = System.nanoTime();
            for (JsonNode offset : offsets) {
                if (cold) {
                    try (LogSegment opened = open(scratch.partition)) {
                        find(opened, offset.asLong(), contents);
                    }
                } else {
                    find(segment, offset.asLong(), contents);
                }
            }
            spent.accept((System.nanoTime() - start) / offsets.size());
            if (segment != null) {
                segment.close();
            }
        }
        return contents;
    }

    /** Find each of the times. */
    static Contents times(String path, JsonNode times, boolean cold, Consumer<Long> spent) throws IOException {
        Contents contents = new Contents();
        try (ScratchDirectory scratch = linked(path, true)) {
            LogSegment segment = cold ? null : open(scratch.partition);
            long start = System.nanoTime();
            for (JsonNode time : times) {
                if (cold) {
                    try (LogSegment opened = open(scratch.partition)) {
                        since(opened, time.asLong(), contents);
                    }
                } else {
                    since(segment, time.asLong(), contents);
                }
            }
            spent.accept((System.nanoTime() - start) / times.size());
            if (segment != null) {
                segment.close();
            }
        }
        return contents;
    }

    private static void since(LogSegment segment, long time, Contents contents) throws IOException {
        contents.number += segment.findOffsetByTimestamp(time, 0, Integer.MAX_VALUE).map(found -> found.offset).orElse(-1L);
        contents.count++;
    }

    private static void find(LogSegment segment, long offset, Contents contents) throws IOException {
        for (RecordBatch batch : segment.read(offset, FETCH_SIZE).records.batches()) {
            for (Record record : batch) {
                if (record.offset() >= offset) {
                    contents.add(record);
                    return;
                }
            }
        }
    }

    private static ScratchDirectory linked(String path, boolean indexes) throws IOException {
        ScratchDirectory scratch = new ScratchDirectory();
        Path log = Path.of(path);
        Files.createSymbolicLink(scratch.partition.toPath().resolve(log.getFileName()), log);
        for (String kind : indexes ? new String[] {"index", "timeindex"} : new String[0]) {
            Path index = Path.of(path.substring(0, path.lastIndexOf('.') + 1) + kind);
            Files.copy(index, scratch.partition.toPath().resolve(index.getFileName()));
        }
        return scratch;
    }

    private static LogSegment open(File directory) throws IOException {
        return LogSegment.open(directory, 0, CONFIG, Time.SYSTEM, true, 0, false, "");
    }
}
