"""The chunks of an answer: bytes in memory, and ranges of files that are sent without being read."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.storage.file_reader import OPEN_FLAGS, unreadable

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from seglog_format.log.segment import LogSegment

MIN_SLICE_SIZE: Final = 1 << 14
"""Smaller ranges are copied: to send them from the file takes longer, and keeps a file open."""

COPY_SIZE: Final = 1 << 18
"""Bytes read at a time where the system cannot send from a file."""

HAS_SENDFILE: Final = hasattr(os, "sendfile")


class SliceLostError(Exception):
    """The file is shorter than when the answer was made."""


class FileSlice:
    """Whole entries of a `.log` file, to be sent as they are stored.

    The file is opened at once, so it stays readable if it is renamed or removed before it is sent.

    Attributes:
        position: of the next byte to send.
        size: bytes that are left to send.
    """

    __slots__ = ("_descriptor", "position", "size")

    def __init__(self, path: str, position: int, size: int) -> None:
        """Open the file.

        Raises:
            UsageError: it does not exist, or may not be read.
            UnreadableError: it ends before the slice does (SEG-PDR-022).
        """
        try:
            self._descriptor = os.open(path, OPEN_FLAGS)
        except OSError as error:
            msg = f"{path}: {error.strerror}"
            raise UsageError(msg) from error
        self.position = position
        self.size = size
        if (found := os.fstat(self._descriptor).st_size) < position + size:
            raise unreadable(path, found, position + size - found, None)

    def send(self, target: socket.socket, *, sendfile: bool = HAS_SENDFILE) -> int:
        """Send as much as the socket accepts, straight from the file where the system can.

        Raises:
            SliceLostError: the file ends before the slice does.
            OSError: from the socket; `BlockingIOError` if it accepts nothing now.
        """
        sent = self._sendfile(target) if sendfile else self._copy(target)
        self.position += sent
        self.size -= sent
        return sent

    def _sendfile(self, target: socket.socket) -> int:
        sent = os.sendfile(target.fileno(), self._descriptor, self.position, self.size)
        if sent == 0:
            raise SliceLostError
        return sent

    def _copy(self, target: socket.socket) -> int:
        os.lseek(self._descriptor, self.position, os.SEEK_SET)
        data = os.read(self._descriptor, min(self.size, COPY_SIZE))
        if not data:
            raise SliceLostError
        return target.send(data)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self.close()


Chunk: TypeAlias = bytes | FileSlice


def size_of(chunk: Chunk) -> int:
    """Return the size of a chunk of an answer."""
    return chunk.size if isinstance(chunk, FileSlice) else len(chunk)


def close_all(chunks: Iterable[Chunk | memoryview]) -> None:
    """Close the files of an answer that is not sent."""
    for chunk in chunks:
        if isinstance(chunk, FileSlice):
            chunk.close()


def taken(segment: LogSegment, position: int, size: int) -> Chunk:
    """Return a range of a log as a chunk: a small or fetched one is copied, a large one stays in its file."""
    if size < MIN_SLICE_SIZE or segment.is_tiered:
        return bytes(segment.source.view(position, position + size))
    return FileSlice(segment.path, position, size)
