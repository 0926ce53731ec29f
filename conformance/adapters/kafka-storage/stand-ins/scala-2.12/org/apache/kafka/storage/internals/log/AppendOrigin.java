package org.apache.kafka.storage.internals.log;

/** Who appends, which this release tells by whether it is a client. */
public enum AppendOrigin {
    REPLICATION,
    COORDINATOR,
    CLIENT
}
