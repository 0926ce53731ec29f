package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.SegmentCache;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;

/** What brokers conclude from a history of remote segments. Segments go by small numbers. */
final class Tier {
    static final TopicIdPartition PARTITION =
        new TopicIdPartition(new Uuid(1, 1), new TopicPartition("orders", 0));

    private Tier() {
    }

    /** Apply the {@code events}, then answer the questions. */
    static void replay(JsonNode request, ObjectNode answer) throws Exception {
        SegmentCache cache = new SegmentCache();
        ArrayNode outcomes = answer.putArray("outcomes");
        for (JsonNode event : request.path("events")) {
            outcomes.add(outcome(cache, event));
        }
        describe(cache.all(), answer.putArray("segments"));
        NavigableMap<Integer, Long> checkpoint = epochs(request.path("checkpoint"));
        long logEnd = request.path("logEndOffset").asLong();
        ArrayNode within = answer.putArray("within");
        for (RemoteLogSegmentMetadata segment : cache.all()) {
            if (TierRelease.isWithin(segment, logEnd, checkpoint)) {
                within.add(number(segment.remoteLogSegmentId()));
            }
        }
        for (JsonNode epoch : request.path("epochs")) {
            describe(cache.ofEpoch(epoch.asInt()), answer.withObject("/ofEpoch").putArray(epoch.asText()));
            answer.withObject("/highest").put(epoch.asText(), cache.highestOffset(epoch.asInt()).orElse(-1L));
        }
        ArrayNode at = answer.putArray("at");
        ArrayNode withTransactions = answer.putArray("withTransactions");
        for (JsonNode question : request.path("questions")) {
            int epoch = question.path(0).asInt();
            long offset = question.path(1).asLong();
            at.add(number(cache.segmentAt(epoch, offset)));
            withTransactions.add(number(TierRelease.withTransactions(cache, epoch, offset)));
        }
        TierRelease.manage(request, cache, checkpoint, answer);
    }

    private static String outcome(SegmentCache cache, JsonNode event) {
        try {
            if (event.has("startOffset")) {
                cache.add(segment(event));
            } else {
                cache.update(new RemoteLogSegmentMetadataUpdate(id(event), event.path("at").asLong(), custom(event),
                    state(event), event.path("broker").asInt()));
            }
            return "";
        } catch (Exception refused) {
            return refused.getClass().getSimpleName();
        }
    }

    private static RemoteLogSegmentMetadata segment(JsonNode event) {
        return TierRelease.segment(id(event), event, custom(event), state(event), epochs(event.path("epochs")));
    }

    static NavigableMap<Integer, Long> epochs(JsonNode rows) {
        NavigableMap<Integer, Long> epochs = new TreeMap<>();
        rows.forEach(row -> epochs.put(row.path(0).asInt(), row.path(1).asLong()));
        return epochs;
    }

    static long number(RemoteLogSegmentId id) {
        return id.id().getLeastSignificantBits();
    }

    private static long number(Optional<RemoteLogSegmentMetadata> segment) {
        return segment.map(each -> number(each.remoteLogSegmentId())).orElse(-1L);
    }

    private static RemoteLogSegmentId id(JsonNode event) {
        return new RemoteLogSegmentId(PARTITION, new Uuid(1, event.path("id").asLong()));
    }

    private static RemoteLogSegmentState state(JsonNode event) {
        return RemoteLogSegmentState.forId((byte) event.path("state").asInt());
    }

    private static Optional<CustomMetadata> custom(JsonNode event) {
        return event.has("custom") ? Optional.of(new CustomMetadata(new byte[] {(byte) event.path("custom").asInt()}))
            : Optional.empty();
    }

    private static void describe(List<RemoteLogSegmentMetadata> segments, ArrayNode into) {
        for (RemoteLogSegmentMetadata segment : segments) {
            into.addArray().add(number(segment.remoteLogSegmentId())).add(segment.state().id()).add(segment.brokerId())
                .add(segment.eventTimestampMs()).add(segment.customMetadata().map(each -> each.value()[0]).orElse((byte) -1));
        }
    }
}
