"""Recover, truncate and salvage logs, and rebuild their indexes: plans as values, then changes of files."""
