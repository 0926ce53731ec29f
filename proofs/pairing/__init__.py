"""Every writer by every reader: the same chosen records, written by real producers, read by all implementations."""
