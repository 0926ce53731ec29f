"""The log that salvage makes of damaged files, as a listing that readers and copies can use without writing it first.

A new segment that is one whole file keeps the path of that file. Any other one gets a path at which no file is, and a
storage that puts its bytes together.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from seglog_format.log.listing import SegmentFiles
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.salvage_placement import blocked_reports, placed_by_name, placement_of, reports_of
from seglog_format.storage.byte_source import Window
from seglog_format.storage.log_storage import FileStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.salvage_by_content import PlacedPart
    from seglog_format.recovery.salvage_placement import SalvagedSegment
    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.storage.log_storage import DirectoryEntries, LogStorage, SizeCheck

SALVAGED: Final = "salvaged"
"""Name of the directory, which does not exist, in the paths of segments that are put together."""


class FilePiece(NamedTuple):
    """Bytes of a file, from one position to another."""

    path: Path
    start: int
    end: int


class SalvagedLog(NamedTuple):
    """What salvage makes of a partition.

    Attributes:
        listing: of the new segments. Those that are whole files keep their indexes.
        reports: what was kept of each old log, and what was not.
    """

    listing: PartitionListing
    reports: tuple[SalvagedSegment, ...]


def salvaged_log(listing: PartitionListing) -> SalvagedLog:
    """Return the log that brokers can load and that has every intact entry of a partition. Nothing is written.

    End markers that brokers cannot read are left out, because brokers would cut the log there, or not start.

    Args:
        listing: of the damaged directory.
    """
    with opened_segments(listing, storage=listing.storage) as segments:
        logs, placement = placement_of(listing, segments, is_for_brokers=True)
        reports = (*reports_of(logs, placement), *blocked_reports(listing))
        return SalvagedLog(spliced(listing, logs, placement.parts), reports)


def salvaged_segment(listing: PartitionListing, segment: LogSegment) -> SalvagedLog:
    """Return what `salvaged_log` returns, for one segment of a partition."""
    placement = placed_by_name([segment], is_for_brokers=True)
    return SalvagedLog(spliced(listing, [segment], placement.parts), tuple(reports_of([segment], placement)))


def spliced(listing: PartitionListing, logs: Sequence[LogSegment], parts: Sequence[PlacedPart]) -> PartitionListing:
    """Return a listing of new segments that consist of pieces of logs, which may be in other directories."""
    files, spliced = list[SegmentFiles](), dict[Path, tuple[FilePiece, ...]]()
    for part in parts:
        pieces = tuple(FilePiece(logs[piece.log].paths.log, piece.start, piece.end) for piece in part.pieces)
        old = logs[part.pieces[0].log] if part.pieces else None
        if old is not None and old.base_offset == part.base_offset and pieces == _whole(old):
            files.append(old.paths._replace(snapshot=None))
            continue
        path = listing.path / SALVAGED / segment_file_name(part.base_offset, FileKind.LOG)
        spliced[path] = pieces
        files.append(SegmentFiles(part.base_offset, path))
    return listing._replace(
        segments=tuple(files),
        base_offsets=tuple(each.base_offset for each in files),
        set_aside=(),
        orphans=(),
        storage=SplicedStorage(listing.storage, spliced),
    )


def _whole(log: LogSegment) -> tuple[FilePiece]:
    return (FilePiece(log.paths.log, 0, log.size),)


class SplicedStorage:
    """A storage with additional files, which consist of pieces of its other files.

    Args:
        storage: the storage of the other files.
        spliced: the pieces of each additional file.
    """

    def __init__(self, storage: LogStorage, spliced: Mapping[Path, tuple[FilePiece, ...]]) -> None:
        self._storage = storage
        self._spliced = spliced

    @property
    def is_local(self) -> bool:
        """Return False: not every path is one of the local file system."""
        return False

    def name_of(self, path: Path) -> str:
        """Return the name of a file or directory that errors and rows show."""
        return self._storage.name_of(path)

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory, without the additional files."""
        return self._storage.entries(directory)

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""
        return path not in self._spliced and self._storage.is_link(path)

    def tiered_end(self, path: Path) -> int | None:
        """Return the offset after the remote segment that a file belongs to; None for others."""
        return None if path in self._spliced else self._storage.tiered_end(path)

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file."""
        if path in self._spliced:
            return FileStatus(sum(piece.end - piece.start for piece in self._spliced[path]), None)
        return self._storage.status(path)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a file for reading."""
        if path in self._spliced:
            return SplicedFile(self._storage, self._spliced[path], self.name_of(path))
        return self._storage.open(path, mapped=mapped, check=check)


class SplicedFile:
    """A file that consists of pieces of other files.

    Attributes:
        path: file name for errors.
        size: number of bytes.
    """

    def __init__(self, storage: LogStorage, pieces: tuple[FilePiece, ...], path: str) -> None:
        self.path = path
        self._closing = ExitStack()
        opened: dict[Path, SourceFile] = {}
        for piece in pieces:
            if piece.path not in opened:
                opened[piece.path] = self._closing.enter_context(storage.open(piece.path))
        self._pieces = [(opened[piece.path], piece) for piece in pieces]
        self._starts = [0]
        for piece in pieces:
            self._starts.append(self._starts[-1] + piece.end - piece.start)
        self.size = self._starts[-1]

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another in one piece, fewer at the end of the file."""
        parts = [
            source.view(piece.start + max(start - first, 0), min(piece.end, piece.start + end - first))
            for (source, piece), (first, after) in zip(self._pieces, pairwise(self._starts), strict=True)
            if first < end and after > start
        ]
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part that holds the byte at a position and bytes after it."""
        for (source, piece), (first, after) in zip(self._pieces, pairwise(self._starts), strict=True):
            if first <= position and position + at_least <= after and position < after:
                start, data = source.window(piece.start + position - first, at_least)
                cut = data[max(piece.start - start, 0) : piece.end - start]
                return Window(first + max(start - piece.start, 0), cut)
        return Window(position, self.view(position, min(position + max(at_least, 1), self.size)))

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read of all pieces."""
        for source, piece in self._pieces if (start, end) == (0, None) else ():
            source.expect(piece.start, piece.end)

    def forget(self) -> None:
        """Release the memory that holds the bytes read so far."""
        for source, _ in self._pieces:
            source.forget()

    def release_before(self, position: int) -> None:
        """Do nothing: the pieces are read through windows."""

    def close(self) -> None:
        """Close the files."""
        self._closing.close()

    def __enter__(self) -> Self:
        """Enter the context."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        self.close()
