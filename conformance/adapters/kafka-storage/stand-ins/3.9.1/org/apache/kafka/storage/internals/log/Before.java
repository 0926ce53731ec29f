package org.apache.kafka.storage.internals.log;

import java.io.File;

/** What only this release calls so. */
public final class Before {
    private Before() {
    }

    public static kafka.server.checkpoints.OffsetCheckpointFile offsets(File file, LogDirFailureChannel failures) {
        return new kafka.server.checkpoints.OffsetCheckpointFile(file, failures);
    }
}
