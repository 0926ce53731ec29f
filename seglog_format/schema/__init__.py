"""Construct declarations, one module per chapter: the executable form of the specification. No file access."""
