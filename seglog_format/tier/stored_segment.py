"""The files of a segment that objects hold, independent of their layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.arguments import Closing
from seglog_format.errors import UsageError
from seglog_format.names import FileKind
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, refuse_beyond

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.tier.layout import SegmentFacts


class MemoryFile(MemoryBytes, Closing):
    """A small file in memory; a `SourceFile`."""

    def expect(self, start: int, end: int | None) -> None:
        """Do nothing: all bytes are in memory."""

    def forget(self) -> None:
        """Do nothing, as `expect`."""

    def release_before(self, position: int) -> None:
        """Do nothing, as `expect`."""

    def close(self) -> None:
        """Do nothing: views stay valid."""


class SmallFile(NamedTuple):
    """A file that is read whole.

    Attributes:
        name: of the object that holds it, for errors.
        size: original size of the file in bytes.
        load: fetches and decodes the file.
    """

    name: str
    size: int
    load: Callable[[], bytes]


class LogFile(NamedTuple):
    """A log in an object.

    Attributes:
        name: of the object.
        size: size of the original log in bytes.
        open: opens the log, without fetching anything.
    """

    name: str
    size: int
    open: Callable[[], SourceFile]


class StoredSegment:
    """The files of a segment; an `OpenedSegment`.

    Attributes:
        facts: description of the segment by its objects.
        kinds: kinds of the stored files.
    """

    def __init__(self, facts: SegmentFacts, log: LogFile | None, others: Mapping[FileKind, SmallFile]) -> None:
        """Create a segment from its files.

        Args:
            facts: description of the segment by its objects.
            log: its log; None if there is no such object.
            others: its other files.
        """
        self.facts = facts
        self._log = log
        self._others = dict(others)
        self.kinds = frozenset(self._others) | ({FileKind.LOG} if log is not None else set())

    def name_of(self, kind: FileKind) -> str:
        """Return the name of the object that holds a file.

        Raises:
            UsageError: there is no such file.
        """
        return self._file(kind).name

    def size(self, kind: FileKind) -> int:
        """Return the original size of a file in bytes.

        Raises:
            UsageError: there is no such file.
        """
        return self._file(kind).size

    def open(self, kind: FileKind) -> SourceFile:
        """Open a file.

        Raises:
            FormatError: an object does not follow its layout.
            UsageError: there is no such file, a decryption key is missing, or the store does not answer.
        """
        file = self._file(kind)
        if isinstance(file, LogFile):
            return file.open()
        refuse_beyond(MAX_WHOLE_SIZE, file.size, file.name)
        return MemoryFile(file.load(), file.name)

    def _file(self, kind: FileKind) -> LogFile | SmallFile:
        file = self._log if kind is FileKind.LOG else self._others.get(kind)
        if file is None:
            msg = (
                f"segment {self.facts.id.segment_id}: there is no object with its {kind.name.lower().replace('_', ' ')}"
            )
            raise UsageError(msg)
        return file


def whole_file(source: SourceFile) -> bytes:
    """Return all bytes of a small file, and close it."""
    with source:
        return bytes(source.view(0, source.size))
