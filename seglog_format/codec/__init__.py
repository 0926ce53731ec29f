"""Conversion of bytes to model objects and back, without file access. Construct's containers end in this package."""
