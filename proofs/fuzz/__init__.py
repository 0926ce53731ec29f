"""Proofs on hostile and random bytes."""
