"""What a decoder says of bytes that it cannot decode."""

from __future__ import annotations


class UndecodedError(Exception):
    """Bytes that are not what the schema says. Callers of the package get the reason as text."""
