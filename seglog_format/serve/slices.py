"""The chunks of an answer: bytes in memory, and ranges of files that are sent without being read.

With them, the source of a served partition and the result of a fetch, which name those ranges.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.model import INT64_MAX, AbortedTxn
from seglog_format.storage.file_reader import OPEN_FLAGS, unreadable

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from seglog_format.log.partition import Partition
    from seglog_format.log.segment import LogSegment


# -- the source of a served partition, and the result of a fetch -------------------------------------------------------


class LogRange(NamedTuple):
    """The offsets of a log that a client may read; `stable` is the last stable offset, or the end of the log."""

    start: int
    end: int
    stable: int

    @property
    def as_fields(self) -> LogRange:
        """The range with offsets limited to the largest value of an answer's fields."""
        if self.end <= INT64_MAX:
            return self
        return LogRange(self.start, INT64_MAX, min(self.stable, INT64_MAX))


class Fetched(NamedTuple):
    """The result of a fetch of one partition.

    Attributes:
        log: its first and last offsets.
        records: whole entries; None where there are none.
        aborted: the aborted transactions in the range; None for a client that reads uncommitted records.
        codec_id: of the first entry; old clients cannot read zstd.
    """

    log: LogRange
    records: Chunk | None
    aborted: Sequence[AbortedTxn] | None
    codec_id: int = 0


class Source(NamedTuple):
    """The directory of a partition, and how to read it.

    Attributes:
        topic: its topic.
        number: of the partition.
        path: of its directory.
        opener: opens the directory.
        end: returns the end that readers may see; None if no writer in this process has the partition.
        is_raw: bytes are sent unchecked, damage included.
    """

    topic: str
    number: int
    path: Path
    opener: Callable[[], Partition]
    end: Callable[[], int] | None = None
    is_raw: bool = False

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


# -- drops what was read of log files after use, so a server's memory does not grow with the partitions it serves ------


DROP_SIZE: Final = 1 << 19
"""Bytes read before the window that holds the last of them is dropped; windows become larger until then."""


class KeptWindow:
    """Limits what one partition keeps in memory to a small window of one segment. Callers hold the partition's lock."""

    def __init__(self) -> None:
        self._segment: LogSegment | None = None
        self._size = 0

    def used(self, segment: LogSegment, size: int) -> None:
        """Record that `size` bytes of a segment were read, and are no longer needed."""
        if segment is not self._segment:
            self.drop()
            self._segment = segment
        self._size += size
        if self._size >= DROP_SIZE:
            self.drop()

    def drop(self) -> None:
        """Drop the window."""
        if self._segment is not None:
            self._segment.forget()
        self._segment, self._size = None, 0


# -- the chunks of an answer: bytes in memory, and ranges of files that are sent without being read --------------------


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
