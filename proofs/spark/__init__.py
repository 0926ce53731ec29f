"""Proofs of the data source for Spark."""
