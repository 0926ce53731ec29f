"""Readers of segments, indexes, partitions and log directories, which change nothing."""
