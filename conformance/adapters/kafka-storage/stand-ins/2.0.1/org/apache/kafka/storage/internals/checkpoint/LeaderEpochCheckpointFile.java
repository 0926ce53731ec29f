package org.apache.kafka.storage.internals.checkpoint;

import java.io.File;
import java.util.List;
import kafka.server.LogDirFailureChannel;
import kafka.server.epoch.EpochEntry;
import scala.jdk.javaapi.CollectionConverters;

/** A checkpoint of leader epochs, with the list that it gives since 3.5. */
public final class LeaderEpochCheckpointFile {
    public final kafka.server.checkpoints.LeaderEpochCheckpointFile before;

    public LeaderEpochCheckpointFile(File file, LogDirFailureChannel failures) {
        before = new kafka.server.checkpoints.LeaderEpochCheckpointFile(file, failures);
    }

    public static File newFile(File directory) {
        return new File(directory, "leader-epoch-checkpoint");
    }

    public List<EpochEntry> read() {
        return CollectionConverters.asJava(before.read());
    }
}
