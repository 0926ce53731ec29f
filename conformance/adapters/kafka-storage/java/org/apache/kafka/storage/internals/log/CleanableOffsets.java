package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.util.Optional;
import org.apache.kafka.storage.internals.log.UnifiedLog;

/** Where a log may be cleaned. In the package of {@code LogCleanerManager}, which tells no other since 4.3. */
public record CleanableOffsets(long firstDirty, long firstUncleanable) {
    public static CleanableOffsets of(UnifiedLog log, Optional<Long> checkpointed, long nowMs) throws IOException {
        LogCleanerManager.OffsetsToClean found = LogCleanerManager.cleanableOffsets(log, checkpointed, nowMs);
        return new CleanableOffsets(found.firstDirtyOffset(), found.firstUncleanableDirtyOffset());
    }
}
