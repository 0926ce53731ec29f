package org.apache.kafka.storage.internals.utils;

import org.apache.kafka.common.utils.Time;

/** What slows down a cleaner, made as it is since 3.5. */
public final class Throttler extends kafka.utils.Throttler {
    public Throttler(double perSecond, long intervalMs, String metric, String units, Time time) {
        super(perSecond, intervalMs, true, metric, units, time);
    }
}
