package org.apache.kafka.server.log.remote.storage;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.log.remote.metadata.storage.SegmentCache;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** A {@link RemoteLogManager} over a cache and a log, most of which only its package may call. */
public final class ManagerDoor implements AutoCloseable {
    private final List<RemoteLogSegmentId> deleted = new ArrayList<>();
    private final RemoteLogManager manager;
    private final UnifiedLog log;
    private final TopicIdPartition partition;
    private long logStartOffset;

    public ManagerDoor(File directory, SegmentCache cache, UnifiedLog log, TopicIdPartition partition, Time time)
            throws IOException {
        Metadata metadata = new Metadata(cache);
        Storage storage = new Storage(deleted);
        this.log = log;
        this.partition = partition;
        this.logStartOffset = log.logStartOffset();
        RemoteLogManagerConfig config =
            new RemoteLogManagerConfig(new AbstractConfig(RemoteLogManagerConfig.configDef(), Map.of(), false));
        this.manager = new RemoteLogManager(config, 0, directory.getPath(), "cluster", time,
                asked -> Optional.of(log), (moved, offset) -> logStartOffset = offset, new BrokerTopicStats(true),
                new Metrics(), Optional.empty()) {
            @Override
            RemoteStorageManager createRemoteStorageManager() {
                return storage;
            }

            @Override
            RemoteLogMetadataManager createRemoteLogMetadataManager() {
                return metadata;
            }
        };
    }

    public static boolean isWithin(RemoteLogSegmentMetadata segment, long logEnd, NavigableMap<Integer, Long> epochs) {
        return RemoteLogManager.isRemoteSegmentWithinLeaderEpochs(segment, logEnd, epochs);
    }

    public OffsetAndEpoch highestCopied() throws RemoteStorageException {
        return manager.findHighestRemoteOffset(partition, log);
    }

    /** What is deleted by retention, in order. */
    public List<RemoteLogSegmentId> expire() throws Exception {
        manager.new RLMExpirationTask(partition).cleanupExpiredRemoteLogSegments();
        return deleted;
    }

    /** The log start offset after that. */
    public long logStartOffset() {
        return logStartOffset;
    }

    @Override
    public void close() {
        manager.close();
    }

    private record Metadata(SegmentCache cache) implements RemoteLogMetadataManager {
        @Override
        public CompletableFuture<Void> addRemoteLogSegmentMetadata(RemoteLogSegmentMetadata segment) {
            cache.add(segment);
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public CompletableFuture<Void> updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate update) {
            try {
                cache.update(update);
            } catch (RemoteResourceNotFoundException gone) {
                // Kafka's own metadata manager logs it: a segment of two epochs may be deleted twice in one pass.
            }
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(TopicIdPartition of, int epoch, long offset) {
            return cache.segmentAt(epoch, offset);
        }

        @Override
        public Optional<Long> highestOffsetForEpoch(TopicIdPartition of, int epoch) {
            return cache.highestOffset(epoch);
        }

        @Override
        public CompletableFuture<Void> putRemotePartitionDeleteMetadata(RemotePartitionDeleteMetadata deletion) {
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition of) {
            return cache.all().iterator();
        }

        @Override
        public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition of, int epoch)
                throws RemoteStorageException {
            return cache.ofEpoch(epoch).iterator();
        }

        @Override
        public void onPartitionLeadershipChanges(Set<TopicIdPartition> leaders, Set<TopicIdPartition> followers) {
        }

        @Override
        public void onStopPartitions(Set<TopicIdPartition> partitions) {
        }

        @Override
        public long remoteLogSize(TopicIdPartition of, int epoch) throws RemoteStorageException {
            return cache.ofEpoch(epoch).stream().mapToLong(RemoteLogSegmentMetadata::segmentSizeInBytes).sum();
        }

        @Override
        public void configure(Map<String, ?> settings) {
        }

        @Override
        public void close() {
        }
    }

    private record Storage(List<RemoteLogSegmentId> deleted) implements RemoteStorageManager {
        @Override
        public Optional<RemoteLogSegmentMetadata.CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment,
                LogSegmentData data) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int start, int end) {
            throw new UnsupportedOperationException();
        }

        @Override
        public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType type) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) {
            deleted.add(segment.remoteLogSegmentId());
        }

        @Override
        public void configure(Map<String, ?> settings) {
        }

        @Override
        public void close() {
        }
    }
}
