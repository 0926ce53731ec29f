"""The error of a decoder for bytes that it cannot decode."""

from __future__ import annotations


class UndecodedError(Exception):
    """The bytes do not match the schema. Callers of the package get the reason as text."""
