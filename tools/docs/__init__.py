"""Generators of the pages of the documentation."""
