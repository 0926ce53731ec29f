package org.apache.kafka.storage.log.metrics;

/** Counters of a broker, by the name that they have since 4.0. */
public final class BrokerTopicStats extends kafka.server.BrokerTopicStats {
    public BrokerTopicStats(boolean remote) {
        super(remote);
    }
}
