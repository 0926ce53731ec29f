"""Segments in a remote store: what plug-ins of brokers put there, read without a broker (chapters 46 and 47)."""
