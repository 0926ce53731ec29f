package org.apache.kafka.storage.internals.log;

import org.apache.kafka.storage.internals.log.UnifiedLog;

/** A log that is to be cleaned, by the name that it has since 4.1. */
public final class LogToClean {
    final kafka.log.LogToClean before;

    public LogToClean(UnifiedLog log, long firstDirty, long uncleanable, boolean needsCompactionNow) {
        before = new kafka.log.LogToClean(
            log.before.topicPartition(), log.before, firstDirty, uncleanable, needsCompactionNow);
    }

    public long firstDirtyOffset() {
        return before.firstDirtyOffset();
    }

    public long firstUncleanableOffset() {
        return before.firstUncleanableOffset();
    }

    public long cleanableBytes() {
        return before.cleanableBytes();
    }
}
