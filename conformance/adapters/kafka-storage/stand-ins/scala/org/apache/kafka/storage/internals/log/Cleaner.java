package org.apache.kafka.storage.internals.log;

import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.OffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.runtime.BoxedUnit;

/** The cleaner, by the name that it has since 4.1. */
public final class Cleaner {
    private final kafka.log.Cleaner before;

    public Cleaner(int id, OffsetMap map, int bufferSize, int maxBufferSize, double loadFactor, Throttler throttler,
            Time time, Consumer<TopicPartition> check) {
        before = new kafka.log.Cleaner(id, map, bufferSize, maxBufferSize, loadFactor, throttler, time, partition -> {
            check.accept(partition);
            return BoxedUnit.UNIT;
        });
    }

    public Map.Entry<Long, Object> doClean(LogToClean log, long nowMs) {
        var done = before.doClean(log.before, nowMs);
        return Map.entry((Long) done._1(), done._2());
    }
}
