"""What lies on disk, read: segments, indexes, partitions, log directories. Nothing here creates or repairs."""
