package org.apache.kafka.storage.internals.log;

import java.io.File;
import org.apache.kafka.common.record.MemoryRecords;

/** What only this release calls so. */
public final class Before {
    private Before() {
    }

    static LogAppendInfo follow(kafka.log.UnifiedLog log, MemoryRecords records, int leaderEpoch) {
        return log.appendAsFollower(records);
    }

    public static kafka.server.checkpoints.OffsetCheckpointFile offsets(File file, LogDirFailureChannel failures) {
        return new kafka.server.checkpoints.OffsetCheckpointFile(file, failures);
    }
}
