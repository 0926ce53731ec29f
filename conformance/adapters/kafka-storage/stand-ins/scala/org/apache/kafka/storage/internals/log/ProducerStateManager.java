package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import scala.jdk.javaapi.CollectionConverters;

/** The producers' state, made as it is since 3.5. */
public final class ProducerStateManager {
    final kafka.log.ProducerStateManager before;

    public ProducerStateManager(
            TopicPartition partition, File directory, int transactionMs, ProducerStateManagerConfig config, Time time) {
        before = Before.producers(partition, directory, config.producerIdExpirationMs(), time);
    }

    public void truncateAndReload(long logStartOffset, long logEndOffset, long nowMs) {
        before.truncateAndReload(logStartOffset, logEndOffset, nowMs);
    }

    public long mapEndOffset() {
        return before.mapEndOffset();
    }

    public Map<Long, ?> activeProducers() {
        Map<Long, Object> found = new HashMap<>();
        CollectionConverters.asJava(before.activeProducers()).forEach((id, entry) -> found.put((Long) id, entry));
        return found;
    }

    public static List<ProducerStateEntry> readSnapshot(File file) {
        return CollectionConverters.asJavaCollection(kafka.log.ProducerStateManager.readSnapshot(file)).stream()
            .map(ProducerStateEntry::of).toList();
    }
}
