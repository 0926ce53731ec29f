package org.apache.kafka.storage.internals.log;

/** Where failures of a directory are told since 1.0. */
public record LogDirFailureChannel(int directories) {
}
