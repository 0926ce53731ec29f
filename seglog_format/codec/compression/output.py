"""Where decompressed bytes go: a buffer with a limit."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from seglog_format.errors import RefusedError

if TYPE_CHECKING:
    from seglog_format.errors import Location
    from seglog_format.storage.byte_source import Buffer

PIECE_SIZE: Final = 2**20
"""Decompressed bytes asked for at a time where a library can stop and go on."""

LIBRARY_ERRORS: Final = (BufferError, OverflowError, RuntimeError, SystemError, ValueError)
"""What a library may raise over bytes it cannot decode, besides its own errors."""


def inside(at: Location, name: str, position: int = 0, size: int = 0) -> Location:
    """A named part of what stands at a location, ``position`` bytes into it."""
    return at.at(f"{at.field}.{name}" if at.field else name, position, size)


class Output:
    """Decompressed bytes, up to a limit that the caller of `decompress` set."""

    def __init__(self, limit: int, at: Location) -> None:
        self._limit = limit
        self._at = at
        self._buffer = io.BytesIO()

    @property
    def room(self) -> int:
        """Bytes that may still come."""
        return self._limit - self._buffer.tell()

    def reserve(self, size: int) -> None:
        """Make sure that so many bytes may still come.

        Raises:
            RefusedError: they would pass the limit (SEG-COD-016).
        """
        if size > self.room:
            expected = f"at most {self._limit} decompressed bytes, the limit set"
            raise RefusedError(self._at, "SEG-COD-016", expected=expected, found="more")

    def append(self, piece: Buffer) -> None:
        """Take bytes over.

        Raises:
            RefusedError: they pass the limit (SEG-COD-016).
        """
        self.reserve(len(piece))
        self._buffer.write(piece)

    def content(self) -> bytes:
        """Everything taken so far, without another copy."""
        return self._buffer.getvalue()
