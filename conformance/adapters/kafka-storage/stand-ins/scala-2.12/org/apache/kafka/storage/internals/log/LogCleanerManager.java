package org.apache.kafka.storage.internals.log;

import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import scala.Predef;
import scala.jdk.javaapi.CollectionConverters;

/** Where a log may be cleaned, by the name that tells it since 4.1. */
public final class LogCleanerManager {
    private LogCleanerManager() {
    }

    public static OffsetsToClean cleanableOffsets(UnifiedLog log, Optional<Long> checkpointed, long nowMs) {
        TopicPartition partition = log.before.topicPartition();
        Map<TopicPartition, Object> cleaned = checkpointed.map(offset -> Map.of(partition, (Object) offset)).orElse(Map.of());
        var found = kafka.log.LogCleanerManager$.MODULE$.cleanableOffsets(log.before, partition,
            CollectionConverters.asScala(cleaned).toMap(Predef.$conforms()), nowMs);
        return new OffsetsToClean((Long) found._1(), (Long) found._2());
    }

    public record OffsetsToClean(long firstDirtyOffset, long firstUncleanableDirtyOffset) {
    }
}
