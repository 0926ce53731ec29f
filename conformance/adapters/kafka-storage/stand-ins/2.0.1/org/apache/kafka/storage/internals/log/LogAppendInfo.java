package org.apache.kafka.storage.internals.log;

import scala.jdk.javaapi.OptionConverters;

/** What an append came to, with the offsets that it tells since 3.7. */
public record LogAppendInfo(long firstOffset, long lastOffset) {
    private static final long UNKNOWN = -1;

    static LogAppendInfo of(kafka.log.LogAppendInfo before) {
        return new LogAppendInfo((Long) OptionConverters.toJava(before.firstOffset()).orElse(UNKNOWN), before.lastOffset());
    }
}
