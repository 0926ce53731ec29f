package org.apache.kafka.storage.internals.log;

import java.util.Map;

/** Settings of a topic, by the name that they have since 3.5. */
public final class LogConfig extends kafka.log.LogConfig {
    public LogConfig(Map<?, ?> settings) {
        super(settings);
    }
}
