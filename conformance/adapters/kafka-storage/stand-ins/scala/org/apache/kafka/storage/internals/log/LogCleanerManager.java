package org.apache.kafka.storage.internals.log;

import java.util.Optional;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.jdk.javaapi.OptionConverters;

/** Where a log may be cleaned, by the name that tells it since 4.1. */
public final class LogCleanerManager {
    private LogCleanerManager() {
    }

    public static OffsetsToClean cleanableOffsets(UnifiedLog log, Optional<Long> checkpointed, long nowMs) {
        kafka.log.OffsetsToClean found = kafka.log.LogCleanerManager$.MODULE$.cleanableOffsets(
            log.before, OptionConverters.toScala(checkpointed.map(Object.class::cast)), nowMs);
        return new OffsetsToClean(found.firstDirtyOffset(), found.firstUncleanableDirtyOffset());
    }

    public record OffsetsToClean(long firstDirtyOffset, long firstUncleanableDirtyOffset) {
    }
}
