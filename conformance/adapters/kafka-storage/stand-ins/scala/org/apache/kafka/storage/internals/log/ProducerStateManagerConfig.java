package org.apache.kafka.storage.internals.log;

/** Settings of the producers' state, which are of a class since 3.5. */
public record ProducerStateManagerConfig(int producerIdExpirationMs, boolean transactionVerificationEnabled) {
}
