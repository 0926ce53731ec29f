"""An output file as Arrow's writers take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile

PIECE_SIZE: Final = 2**20
"""Bytes that are written at once."""


class Sink:
    """An output file as Python files are. Arrow writes many small pieces, which are joined here.

    Attributes:
        is_abandoned: nothing is written any more.
    """

    closed: bool = False

    def __init__(self, file: OutputFile) -> None:
        self._file = file
        self._pieces = bytearray()
        self.is_abandoned = False

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if not self.is_abandoned:
            self._pieces += data
            if len(self._pieces) >= PIECE_SIZE:
                self.flush_all()
        return len(data)

    def flush_all(self) -> None:
        """Write what was joined."""
        pieces, self._pieces = self._pieces, bytearray()
        if pieces:
            self._file.write(pieces)

    def tell(self) -> int:
        """Return the position."""
        return self._file.size + len(self._pieces)

    def flush(self) -> None:
        """Do nothing: files are synced when they are published."""

    def close(self) -> None:
        """Do nothing: the output file is closed by its opener."""
