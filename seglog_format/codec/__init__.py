"""Conversion of bytes to model objects and back, without file access. Construct containers do not leave it."""
