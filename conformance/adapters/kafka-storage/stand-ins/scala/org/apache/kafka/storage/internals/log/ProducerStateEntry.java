package org.apache.kafka.storage.internals.log;

import java.util.Collection;
import java.util.OptionalLong;
import kafka.log.BatchMetadata;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;

/** A producer of a snapshot, with the types that it has since 3.5. */
public record ProducerStateEntry(long producerId, short producerEpoch, int coordinatorEpoch, long lastTimestamp,
        OptionalLong currentTxnFirstOffset, Collection<BatchMetadata> batchMetadata) {
    static ProducerStateEntry of(kafka.log.ProducerStateEntry before) {
        OptionalLong first = OptionConverters.toJava(before.currentTxnFirstOffset())
            .map(offset -> OptionalLong.of((Long) offset)).orElse(OptionalLong.empty());
        return new ProducerStateEntry(before.producerId(), before.producerEpoch(), before.coordinatorEpoch(),
            before.lastTimestamp(), first, CollectionConverters.asJavaCollection(before.batchMetadata()));
    }
}
