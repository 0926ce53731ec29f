package org.apache.kafka.storage.log.metrics;

import java.util.Optional;

/** Counters of a broker, by the name that they have since 4.0; in 3.7 settings say whether there is a remote store. */
public final class BrokerTopicStats extends kafka.server.BrokerTopicStats {
    public BrokerTopicStats(boolean remote) {
        super(Optional.empty());
    }
}
