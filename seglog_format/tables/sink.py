"""An output file for Arrow's writers, and the base class of the files that these write."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from seglog_format.storage.output_directory import OutputFile

PIECE_SIZE: Final = 2**20
"""Number of bytes written at once."""


class Sink:
    """An output file with the interface of Python's files. It joins the many small pieces that Arrow writes.

    Attributes:
        is_abandoned: whether writing has stopped.
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
        """Write the joined pieces."""
        pieces, self._pieces = self._pieces, bytearray()
        if pieces:
            self._file.write(pieces)

    def tell(self) -> int:
        """Return the position."""
        return self._file.size + len(self._pieces)

    def flush(self) -> None:
        """Do nothing: files are synced when they are published."""

    def close(self) -> None:
        """Do nothing: the caller that opened the output file closes it."""


class ArrowWritten:
    """Base class of files that one of Arrow's writers writes; each format creates its writer."""

    _writer: Any

    def __init__(self, file: OutputFile) -> None:
        self._sink = Sink(file)

    @property
    def size(self) -> int:
        """Number of bytes so far."""
        return self._sink.tell()

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()
        self._sink.flush_all()

    def abandon(self) -> None:
        """Stop writing. Arrow writes a footer in any case; the sink drops it."""
        self._sink.is_abandoned = True
        with suppress(OSError, ValueError):
            self._writer.close()
