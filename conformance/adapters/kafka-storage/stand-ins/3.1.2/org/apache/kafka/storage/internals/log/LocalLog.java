package org.apache.kafka.storage.internals.log;

import java.io.File;
import org.apache.kafka.common.TopicPartition;

/** Names of directories, by the class that takes them apart since 4.0. */
public final class LocalLog {
    private LocalLog() {
    }

    public static TopicPartition parseTopicPartitionName(File directory) {
        return kafka.log.UnifiedLog$.MODULE$.parseTopicPartitionName(directory);
    }
}
