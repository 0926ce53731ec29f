"""The buffer for decompressed bytes, with a limit."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from seglog_format.errors import Location, RefusedError

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import Buffer

PIECE_SIZE: Final = 2**20
"""Decompressed bytes requested at a time from libraries that can pause."""

LIBRARY_ERRORS: Final = (BufferError, OverflowError, RuntimeError, SystemError, ValueError)
"""Errors of a library for bytes it cannot decode, besides its own error classes."""


def inside(at: Location, name: str, position: int = 0, size: int = 0) -> Location:
    """Return the location of a named part, ``position`` bytes after another location."""
    return at.at(f"{at.field}.{name}" if at.field else name, position, size)


class Output:
    """Decompressed bytes, up to the limit that the caller of `decompress` set."""

    def __init__(self, limit: int, at: Location) -> None:
        self._limit = limit
        self._at = at
        self._buffer = io.BytesIO()

    @property
    def room(self) -> int:
        """Number of bytes that still fit."""
        return self._limit - self._buffer.tell()

    def reserve(self, size: int) -> None:
        """Check that this number of bytes still fits.

        Raises:
            RefusedError: they would exceed the limit (SEG-COD-016).
        """
        if size > self.room:
            expected = f"at most {self._limit} decompressed bytes, the limit set"
            raise RefusedError(self._at, "SEG-COD-016", expected=expected, found="more")

    def append(self, piece: Buffer) -> None:
        """Append bytes.

        Raises:
            RefusedError: they exceed the limit (SEG-COD-016).
        """
        self.reserve(len(piece))
        self._buffer.write(piece)

    def content(self) -> bytes:
        """Return all bytes so far, without copying them."""
        return self._buffer.getvalue()
