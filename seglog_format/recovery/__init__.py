"""Recovery, truncation and salvage of logs, and rebuilding of indexes: plans as values, then file changes."""
