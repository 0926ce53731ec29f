"""Watching the system calls that reach the disk: what is acknowledged was synced before."""
