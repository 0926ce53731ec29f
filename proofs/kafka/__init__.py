"""Proofs that compare this package with Kafka's own classes and brokers."""
