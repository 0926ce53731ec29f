package org.apache.kafka.server.storage.log;

/** How far a fetch sees, as the enumeration that it is since 3.5. */
public enum FetchIsolation {
    LOG_END,
    TXN_COMMITTED
}
