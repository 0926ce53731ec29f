"""Proof by system calls that everything is synced before it is acknowledged."""
