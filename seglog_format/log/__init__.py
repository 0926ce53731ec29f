"""Readers of segments, indexes, partitions and log directories; they change no file."""
