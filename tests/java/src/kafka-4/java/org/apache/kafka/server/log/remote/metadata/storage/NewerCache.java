package org.apache.kafka.server.log.remote.metadata.storage;

import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/** What the cache of 4.1 can tell and that of 3.9 cannot. */
public final class NewerCache {
    private NewerCache() {
    }

    public static Optional<RemoteLogSegmentMetadata> withTransactions(SegmentCache cache, int epoch, long offset) {
        return cache.cache().nextSegmentWithTxnIndex(epoch, offset);
    }
}
