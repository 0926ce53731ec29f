package org.apache.kafka.storage.internals.log;

import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import kafka.log.OffsetMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.runtime.BoxedUnit;

/** The cleaner, by the name that it has since 4.1; it takes its delete horizon from the files. */
public class Cleaner {
    private final kafka.log.Cleaner before;

    public Cleaner(int id, OffsetMap map, int bufferSize, int maxBufferSize, double loadFactor, Throttler throttler,
            Time time, Consumer<TopicPartition> check) {
        before = new kafka.log.Cleaner(id, map, bufferSize, maxBufferSize, loadFactor, throttler, time, partition -> {
            check.accept(partition);
            return BoxedUnit.UNIT;
        });
    }

    public List<List<LogSegment>> groupSegmentsBySize(List<LogSegment> segments, int size, int indexSize,
            long firstUncleanable) throws java.io.IOException {
        throw new UnsupportedOperationException();
    }

    public Map.Entry<Long, Object> doClean(LogToClean log, long nowMs) {
        var done = before.clean(log.before);
        return Map.entry((Long) done._1(), done._2());
    }
}
