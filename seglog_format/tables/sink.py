"""An output file as Arrow's writers take it, and what all files that these write have in common."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

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


class ArrowWritten:
    """A file that one of Arrow's writers fills; each format makes its writer, and writes rows with it."""

    _writer: Any

    def __init__(self, file: OutputFile) -> None:
        self._sink = Sink(file)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._sink.flush_all()

    def abandon(self) -> None:
        """Write nothing more. Arrow writes a footer in any case, which is then dropped."""
        self._sink.is_abandoned = True
        with suppress(OSError, ValueError):
            self._writer.close()
