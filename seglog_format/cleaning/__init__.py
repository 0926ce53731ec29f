"""Retention and compaction: which segments and records are removed, and the file changes that remove them."""
