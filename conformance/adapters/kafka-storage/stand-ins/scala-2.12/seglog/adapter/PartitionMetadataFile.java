package seglog.adapter;

import java.io.File;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** The file of a topic's id, which no class of this release reads. */
record PartitionMetadataFile(File file, LogDirFailureChannel failures) {
    PartitionMetadata read() {
        throw new Serving.Skip("topics have ids since 2.8");
    }
}
