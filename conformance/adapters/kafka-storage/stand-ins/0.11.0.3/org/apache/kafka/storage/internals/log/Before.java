package org.apache.kafka.storage.internals.log;

import java.io.File;
import kafka.server.LogOffsetMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.Time;

/** What only this release calls so. */
public final class Before {
    private Before() {
    }

    static kafka.log.ProducerStateManager producers(TopicPartition partition, File directory, int producerMs, Time time) {
        return new kafka.log.ProducerStateManager(partition, directory, producerMs);
    }

    public static kafka.server.epoch.LeaderEpochFileCache epochs(
            TopicPartition partition, kafka.server.checkpoints.LeaderEpochCheckpointFile file) {
        return new kafka.server.epoch.LeaderEpochFileCache(partition, () -> new LogOffsetMetadata(0, 0, 0), file);
    }

    public static kafka.server.checkpoints.OffsetCheckpointFile offsets(File file, LogDirFailureChannel failures) {
        return new kafka.server.checkpoints.OffsetCheckpointFile(file);
    }

    static AbortedTransaction asMessage(FetchResponse.AbortedTransaction one) {
        return new AbortedTransaction(one.producerId, one.firstOffset);
    }
}
