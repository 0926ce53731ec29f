"""Proofs in which Kafka's own classes and brokers are the judge."""
