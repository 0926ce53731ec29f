package org.apache.kafka.storage.internals.epoch;

import kafka.server.LogOffsetMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;

/** The leader epochs of a partition, made as they are since 3.9. */
public final class LeaderEpochFileCache {
    public final kafka.server.epoch.LeaderEpochFileCache before;

    public LeaderEpochFileCache(TopicPartition partition, LeaderEpochCheckpointFile file, Scheduler scheduler) {
        before = new kafka.server.epoch.LeaderEpochFileCache(
            partition, () -> new LogOffsetMetadata(0, 0, 0), file.before);
    }
}
