package seglog.adapter;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import seglog.kafka.InlineScheduler;
import seglog.kafka.StandingTime;

/** A log, opened as a broker opens it. */
final class Opened implements AutoCloseable {
    private static final int TRANSACTION_MS = 15 * 60 * 1000;
    private static final int PRODUCER_MS = 24 * 60 * 60 * 1000;
    private static final int CHECK_MS = 10 * 60 * 1000;

    final UnifiedLog log;

    private Opened(UnifiedLog log) {
        this.log = log;
    }

    static Opened at(File directory, JsonNode request, long start, long recoveryPoint, boolean isClean, StandingTime time)
            throws IOException {
        LogConfig config = config(request);
        ProducerStateManagerConfig producers = new ProducerStateManagerConfig(PRODUCER_MS, false);
        if (request.path("config").path("remote.storage.enable").asBoolean(false)) {
            return new Opened(Release.openTiered(directory, config, start, recoveryPoint, new InlineScheduler(),
                new BrokerTopicStats(true), time, TRANSACTION_MS, producers, CHECK_MS, new LogDirFailureChannel(1), isClean,
                Optional.empty(), new ConcurrentHashMap<>(), true));
        }
        return new Opened(UnifiedLog.create(directory, config, start, recoveryPoint, new InlineScheduler(),
            new BrokerTopicStats(false), time, TRANSACTION_MS, producers, CHECK_MS, new LogDirFailureChannel(1), isClean,
            Optional.empty()));
    }

    /** As it is after a clean stop. */
    static Opened clean(Scratch scratch, JsonNode request) throws IOException {
        long start = Batches.number(request.path("options"), "logStartOffset", 0);
        return at(scratch.partition, request, start, start, true, new StandingTime(0));
    }

    static LogConfig config(JsonNode request) {
        Properties properties = new Properties();
        properties.put("segment.index.bytes", "1048576");
        for (JsonNode holder : new JsonNode[] {request, request.path("options")}) {
            if (holder.has("indexIntervalBytes")) {
                properties.put("index.interval.bytes", holder.get("indexIntervalBytes").asText());
            }
        }
        if (request.has("formatVersion")) {
            properties.put("message.format.version", request.get("formatVersion").asText());
        }
        request.path("config").properties().forEach(setting -> {
            String name = setting.getKey().equals("segment.bytes") ? Release.segmentBytes() : setting.getKey();
            properties.put(name, setting.getValue().asText());
        });
        return new LogConfig(properties);
    }

    @Override
    public void close() throws IOException {
        Release.prepareForClose(log);
        log.close();
    }
}
