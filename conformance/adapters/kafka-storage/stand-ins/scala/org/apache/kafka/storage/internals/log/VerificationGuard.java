package org.apache.kafka.storage.internals.log;

/** What a transaction is verified by since 3.6, and not in this release. */
public enum VerificationGuard {
    SENTINEL
}
