package org.apache.kafka.storage.log.metrics;

/** Counters of a broker, made as they are since 3.6. */
public final class BrokerTopicStats extends kafka.server.BrokerTopicStats {
    public BrokerTopicStats(boolean remote) {
        super();
    }
}
