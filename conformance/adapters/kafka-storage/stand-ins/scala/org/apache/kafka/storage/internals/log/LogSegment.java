package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.Optional;
import kafka.log.OffsetIndex;
import kafka.log.TimeIndex;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import scala.Option;

/** A segment, with the methods that it has since 3.7. */
public record LogSegment(kafka.log.LogSegment before) implements AutoCloseable {
    public static LogSegment open(File directory, long baseOffset, LogConfig config, Time time,
            boolean fileAlreadyExists, int initFileSize, boolean preallocate, String suffix) {
        return new LogSegment(kafka.log.LogSegment.open(
            directory, baseOffset, config, time, fileAlreadyExists, initFileSize, preallocate, suffix));
    }

    public int recover(ProducerStateManager producers, LeaderEpochFileCache epochs) {
        return before.recover(producers.before, Option.apply(epochs.before));
    }

    public FileRecords log() {
        return before.log();
    }

    public long baseOffset() {
        return before.baseOffset();
    }

    public long readNextOffset() {
        return before.readNextOffset();
    }

    public FileRecords.LogOffsetPosition translateOffset(long offset) {
        return before.translateOffset(offset, 0);
    }

    public Optional<FileRecords.TimestampAndOffset> findOffsetByTimestamp(long timestamp, long startingOffset) {
        return Before.found(before.findOffsetByTimestamp(timestamp, startingOffset));
    }

    public long largestTimestamp() {
        return before.largestTimestamp();
    }

    public OffsetIndex offsetIndex() {
        return before.offsetIndex();
    }

    public TimeIndex timeIndex() {
        return before.timeIndex();
    }

    @Override
    public void close() {
        before.close();
    }
}
