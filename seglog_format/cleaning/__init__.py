"""Retention and compaction: which segments and records go, and the changes of files that carry it out."""
