package seglog.cluster;

import org.apache.kafka.image.MetadataProvenance;

/** What is called differently from release to release. */
final class Release {
    static final MetadataProvenance PROVENANCE = new MetadataProvenance(0L, 0, 0L);

    private Release() {
    }
}
