package org.apache.kafka.storage.internals.log;

import java.util.List;
import java.util.OptionalLong;
import kafka.log.ProducerIdEntry;
import scala.jdk.javaapi.OptionConverters;

/** A producer of a snapshot, with the types that it has since 3.5, and its last batch alone. */
public record ProducerStateEntry(long producerId, short producerEpoch, int coordinatorEpoch, long lastTimestamp,
        OptionalLong currentTxnFirstOffset, List<Batch> batchMetadata) {
    static ProducerStateEntry of(ProducerIdEntry before) {
        OptionalLong first = OptionConverters.toJava(before.currentTxnFirstOffset())
            .map(offset -> OptionalLong.of((Long) offset)).orElse(OptionalLong.empty());
        Batch last = new Batch(before.lastSeq(), before.lastOffset(), before.offsetDelta(), before.timestamp());
        return new ProducerStateEntry(before.producerId(), before.producerEpoch(), before.coordinatorEpoch(),
            before.timestamp(), first, last.lastOffset() < 0 ? List.of() : List.of(last));
    }

    /** The last batch of a producer. */
    public record Batch(int lastSeq, long lastOffset, int offsetDelta, long timestamp) {
    }
}
