package seglog.oracle;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.io.IOException;
import java.security.GeneralSecurityException;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import seglog.kafka.InlineScheduler;
import seglog.kafka.StandingTime;

/** Whole logs, as a broker opens, writes and closes them. */
final class Logs {
    private Logs() {
    }

    /** Open the log in {@code directory} as a broker does when it starts, and close it as one does when it stops. */
    static void load(JsonNode request, ObjectNode answer) throws IOException {
        try (Log log = open(request, new StandingTime(request.path("nowMs").asLong(0)))) {
            answer.put("logStartOffset", log.logStartOffset());
            answer.put("logEndOffset", log.logEndOffset());
        }
    }

    /** Open a log, do the {@code steps}, close it. */
    static void write(JsonNode request, ObjectNode answer) throws IOException {
        StandingTime time = new StandingTime(request.path("nowMs").asLong(0));
        try (Log log = open(request, time)) {
            for (JsonNode step : request.path("steps")) {
                time.set(step.path("nowMs").asLong(time.milliseconds()));
                take(step, log);
            }
            answer.put("logStartOffset", log.logStartOffset());
            answer.put("logEndOffset", log.logEndOffset());
        }
    }

    /** Open a log, compact it as the cleaner of a broker does, close it. */
    static void clean(JsonNode request, ObjectNode answer) throws IOException, GeneralSecurityException {
        File directory = new File(request.path("directory").asText());
        Release.clean(directory, Segments.config(request), Start.of(request),
            new StandingTime(request.path("nowMs").asLong(0)), new InlineScheduler(), Cleaning.of(request), answer);
    }

    private static Log open(JsonNode request, StandingTime time) throws IOException {
        File directory = new File(request.path("directory").asText());
        return Release.open(directory, Segments.config(request), Start.of(request), time, new InlineScheduler());
    }

    private static void take(JsonNode step, Log log) throws IOException {
        int epoch = step.path("leaderEpoch").asInt(0);
        switch (step.path("do").asText()) {
            case "lead" -> log.appendAsLeader(
                Segments.records(step.path("records")), epoch, AppendOrigin.valueOf(step.path("origin").asText("CLIENT")));
            case "follow" -> log.appendAsFollower(Segments.records(step.path("records")), epoch);
            case "roll" -> log.roll();
            case "retain" -> log.deleteOldSegments();
            default -> throw new IllegalArgumentException(step.toString());
        }
    }
}
