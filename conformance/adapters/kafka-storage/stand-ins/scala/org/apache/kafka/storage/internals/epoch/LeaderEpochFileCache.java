package org.apache.kafka.storage.internals.epoch;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.Before;

/** The leader epochs of a partition, made as they are since 3.9. */
public final class LeaderEpochFileCache {
    public final kafka.server.epoch.LeaderEpochFileCache before;

    public LeaderEpochFileCache(TopicPartition partition, LeaderEpochCheckpointFile file, Scheduler scheduler) {
        before = Before.epochs(partition, file.before);
    }
}
