package org.apache.kafka.storage.internals.log;

import java.util.Map;

/** Settings of a topic, made as they are since 3.5. */
public final class LogConfig extends kafka.log.LogConfig {
    public LogConfig(Map<?, ?> settings) {
        super(settings, new scala.collection.immutable.HashSet<>());
    }
}
