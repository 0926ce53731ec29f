package org.apache.kafka.server.storage.log;

/** How far a fetch sees, as the enumeration that it is since 3.5. */
public enum FetchIsolation {
    LOG_END(kafka.server.FetchLogEnd$.MODULE$),
    HIGH_WATERMARK(kafka.server.FetchHighWatermark$.MODULE$),
    TXN_COMMITTED(kafka.server.FetchTxnCommitted$.MODULE$);

    public final kafka.server.FetchIsolation before;

    FetchIsolation(kafka.server.FetchIsolation before) {
        this.before = before;
    }
}
