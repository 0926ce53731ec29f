package org.apache.kafka.storage.internals.checkpoint;

import java.io.File;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.Before;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import scala.jdk.javaapi.CollectionConverters;

/** A checkpoint of offsets, by the name that it has since 4.0. */
public final class OffsetCheckpointFile {
    private final kafka.server.checkpoints.OffsetCheckpointFile before;

    public OffsetCheckpointFile(File file, LogDirFailureChannel failures) {
        before = Before.offsets(file, failures);
    }

    public Map<TopicPartition, Long> read() {
        Map<TopicPartition, Long> found = new LinkedHashMap<>();
        CollectionConverters.asJava(before.read()).forEach((partition, offset) -> found.put(partition, (Long) offset));
        return found;
    }

    @SuppressWarnings({"rawtypes", "unchecked"})
    public void write(Map<TopicPartition, Long> offsets) {
        before.write((scala.collection.Map) CollectionConverters.asScala(offsets));
    }
}
