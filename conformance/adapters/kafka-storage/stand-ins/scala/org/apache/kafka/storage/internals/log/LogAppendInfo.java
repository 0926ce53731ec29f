package org.apache.kafka.storage.internals.log;

/** What an append came to, with the offsets that it tells since 3.7. */
public record LogAppendInfo(long firstOffset, long lastOffset) {
    private static final long UNKNOWN = -1;

    static LogAppendInfo of(kafka.log.LogAppendInfo before) {
        return new LogAppendInfo(before.firstOffset().isDefined() ? before.firstOffset().get().messageOffset() : UNKNOWN, before.lastOffset());
    }
}
