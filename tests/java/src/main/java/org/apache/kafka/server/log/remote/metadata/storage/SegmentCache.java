package org.apache.kafka.server.log.remote.metadata.storage;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;

/** A {@link RemoteLogMetadataCache}, most of which only its package may call. */
public final class SegmentCache {
    private final RemoteLogMetadataCache cache = new RemoteLogMetadataCache();

    public SegmentCache() {
        cache.markInitialized();
    }

    public void add(RemoteLogSegmentMetadata segment) {
        cache.addCopyInProgressSegment(segment);
    }

    public void update(RemoteLogSegmentMetadataUpdate update) throws RemoteResourceNotFoundException {
        cache.updateRemoteLogSegmentMetadata(update);
    }

    public Optional<RemoteLogSegmentMetadata> segmentAt(int epoch, long offset) {
        return cache.remoteLogSegmentMetadata(epoch, offset);
    }

    public Optional<Long> highestOffset(int epoch) {
        return cache.highestOffsetForEpoch(epoch);
    }

    public List<RemoteLogSegmentMetadata> all() {
        return listed(cache.listAllRemoteLogSegments());
    }

    public List<RemoteLogSegmentMetadata> ofEpoch(int epoch) throws RemoteResourceNotFoundException {
        return listed(cache.listRemoteLogSegments(epoch));
    }

    /** The cache itself, for what not every release has. */
    RemoteLogMetadataCache cache() {
        return cache;
    }

    private static List<RemoteLogSegmentMetadata> listed(Iterator<RemoteLogSegmentMetadata> segments) {
        List<RemoteLogSegmentMetadata> list = new ArrayList<>();
        segments.forEachRemaining(list::add);
        return list;
    }
}
