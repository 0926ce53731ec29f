"""Proofs that tests and cases notice deliberate faults."""
