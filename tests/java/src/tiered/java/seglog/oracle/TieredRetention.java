package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import seglog.kafka.StandingTime;

/** One pass of retention over the local segments of a log, with remote storage or without. */
public final class TieredRetention {
    private TieredRetention() {
    }

    /** Answers until the input ends. */
    public static void main(String[] arguments) throws IOException {
        Answers.give(Map.of("retain", TieredRetention::retain), System.out);
    }

    /** A log as a broker with remote storage has it. */
    interface Log extends AutoCloseable {
        void updateHighestOffsetInRemoteStorage(long offset);

        void updateHighWatermark(long offset) throws Exception;

        int deleteOldSegments() throws Exception;

        Iterable<LogSegment> segments();

        long logStartOffset();

        long localLogStartOffset();

        long logEndOffset();

        long onlyLocalLogSegmentsSize();

        @Override
        void close();
    }

    /** Open the log in {@code directory}, say what was copied, let the broker delete, close it. */
    static void retain(JsonNode request, ObjectNode answer) throws Exception {
        Map<String, String> settings = new HashMap<>();
        request.path("config").properties().forEach(each -> settings.put(each.getKey(), each.getValue().asText()));
        settings.put("segment.index.bytes", "1000");
        File directory = new File(request.path("directory").asText());
        StandingTime time = new StandingTime(request.path("nowMs").asLong());
        boolean isEnabled = request.path("remoteLogStorageSystemEnable").asBoolean(true);
        try (Log log = TieredLog.open(directory, new LogConfig(settings), Start.of(request), time, isEnabled)) {
            describe(log, answer.putObject("before"));
            log.updateHighWatermark(request.path("highWatermark").asLong(log.logEndOffset()));
            if (request.has("copiedOffset")) {
                log.updateHighestOffsetInRemoteStorage(request.path("copiedOffset").asLong());
            }
            answer.put("deleted", log.deleteOldSegments());
            describe(log, answer.putObject("after"));
        }
    }

    private static void describe(Log log, ObjectNode answer) throws Exception {
        ArrayNode segments = answer.putArray("segments");
        for (LogSegment segment : log.segments()) {
            segments.addArray().add(segment.baseOffset()).add(segment.size()).add(segment.largestTimestamp());
        }
        answer.put("logStartOffset", log.logStartOffset()).put("localLogStartOffset", log.localLogStartOffset());
        answer.put("logEndOffset", log.logEndOffset()).put("onlyLocalSize", log.onlyLocalLogSegmentsSize());
    }
}
