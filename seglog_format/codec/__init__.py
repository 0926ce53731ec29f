"""Bytes to model objects and back, without any input or output. Construct's containers end here."""
