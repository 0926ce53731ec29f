"""Recovery, truncation and salvage of logs, and rebuilding of indexes: first a plan as a value, then file changes."""
