"""Salvage: copy the intact entries of a damaged partition directory, byte for byte, with their offsets."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.codec.checkpoints import decode_partition_metadata, encode_leader_epoch_checkpoint
from seglog_format.codec.framing import walk
from seglog_format.errors import SeglogError, UnreadableError, UsageError, write_errors
from seglog_format.log.entry_table import EVERYTHING, WantedRange
from seglog_format.log.listing import SegmentFiles
from seglog_format.log.transactions import Transactions
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.index_settings import IndexSettings, infer_settings
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.salvage_placement import (
    blocked_reports,
    logs_by_content,
    opened_log,
    overlapping,
    placed_by_name,
    placement_of,
    report_of,
    reports_of,
    salvaged_parts,
    source_of_log,
    with_all_missing,
)
from seglog_format.recovery.salvage_scan import SalvageScan, salvage_scan
from seglog_format.recovery.segment_scan import side_files_of
from seglog_format.state.producer_state import LeaderEpochs
from seglog_format.storage.byte_source import Buffer, ByteSource, Closing, SourceFile, Window, open_log, read_whole
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.log_storage import FileStatus
from seglog_format.storage.new_directory import require_new

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import Frame
    from seglog_format.recovery.salvage_placement import PlacedPart, SalvagedPart, SalvagedSegment
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.files import Files
    from seglog_format.storage.log_storage import DirectoryEntries, LogStorage, SizeCheck

    Change: TypeAlias = Callable[[Frame], Buffer]


WRITE_SIZE: Final = 1 << 24
"""Maximum number of bytes written at once."""


def salvage_partition(  # noqa: PLR0913 - what to copy, and how
    listing: PartitionListing,
    target: Path,
    *,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    files: Files = LOCAL_FILES,
    change: Change | None = None,
    wanted: WantedRange = EVERYTHING,
) -> Iterator[SalvagedSegment]:
    """Copy the intact entries of a partition, and build their indexes.

    A readable `partition.metadata` is copied, and leader epochs are taken from the entries. Producer snapshots are not
    copied: a broker computes them.

    Args:
        listing: of the damaged directory, in which nothing is changed.
        target: the directory to write to; it has to be new or empty (see `require_new`), and outside the damaged one.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        files: the file layer to write through.
        change: returns the bytes to write for an entry; None to write each unchanged.
        wanted: only entries with records that may be in this range.

    Yields:
        What was kept of each segment, after its files are written.

    Raises:
        WriteError: while iterating: a file could not be written. The segments yielded before are complete; the files of
            the segment being written are removed.
    """
    offset = None if generation is None else generation.indexed_offset
    with opened_segments(listing) as segments:
        settings = infer_settings(segments, interval_bytes=interval_bytes, indexed_offset=offset)
        with salvage_writer(target, settings, files, change) as writer:
            if logs_by_content(listing, segments):
                logs, placement = placement_of(listing, segments, wanted=wanted)
                writer.write_parts(logs, placement.parts)
                yield from reports_of(logs, placement)
            else:
                yield from writer.run(overlapping(segments, wanted), wanted)
            yield from blocked_reports(listing)
            writer.finish((listing,))


@contextmanager
def salvage_writer(
    target: Path, settings: IndexSettings, files: Files = LOCAL_FILES, change: Change | None = None
) -> Iterator[SalvageWriter]:
    """Provide a writer of new segments, and remove what is incomplete if the block ends with an error.

    Args:
        target: the directory to write to.
        settings: of the indexes.
        files: the file layer to write through.
        change: returns the bytes to write for an entry; None to write each unchanged.

    Raises:
        WriteError: a file could not be written.
    """
    writer = SalvageWriter(target, settings, files, change)
    try:
        with write_errors("salvage"):
            yield writer
    except BaseException:
        writer.drop_unfinished()
        raise


def salvageable(listing: PartitionListing, wanted: WantedRange = EVERYTHING) -> Iterator[SalvagedSegment]:
    """Yield what `salvage_partition` keeps, segment by segment. Nothing is written."""
    with opened_segments(listing) as segments:
        yield from reports_of(*placement_of(listing, segments, wanted=wanted))
        yield from blocked_reports(listing)


def require_apart(path: Path, target: Path) -> None:
    """Refuse a target that is not empty, or is inside the directory to copy from.

    Raises:
        UsageError: the target is not empty, or is inside that directory.
    """
    require_new(target)
    if path.resolve() in (target.resolve(), *target.resolve().parents):
        msg = f"{target} is inside {path}, where nothing is written"
        raise UsageError(msg)


class SalvageWriter:
    """Writes segments with their indexes, and the files of their partition; see `salvage_writer`."""

    def __init__(self, target: Path, settings: IndexSettings, files: Files, change: Change | None) -> None:
        self.change = change
        self.target = target
        self.settings = settings
        self.files = files
        self.transactions = Transactions()
        self.epochs = LeaderEpochs()
        self.unfinished: list[Path] = []
        self.is_new = not files.exists(target)

    def run(self, segments: Sequence[LogSegment], wanted: WantedRange) -> Iterator[SalvagedSegment]:
        """Write what is wanted of the segments, and yield what was kept of each."""
        self.files.make_directory(self.target)
        for number, segment in enumerate(segments, 1):
            source, refusal = opened_log(segment)
            is_last = number == len(segments) and not wanted.is_window
            scan, parts = self._copy_intact(segment, source, wanted, is_last=is_last)
            for part in parts:
                self._write_side_files(part.base_offset)
            self.unfinished.clear()
            shown = with_all_missing(source, scan, refusal)
            yield report_of(segment, source, shown, tuple(part.base_offset for part in parts))

    def write_parts(self, logs: Sequence[LogSegment], parts: Iterable[PlacedPart]) -> None:
        """Write new segments with entries of logs."""
        self.files.make_directory(self.target)
        for part in parts:
            pieces = (self._pieces(source_of_log(logs[one.log]), one.start, one.end) for one in part.pieces)
            path = self.target / segment_file_name(part.base_offset, FileKind.LOG)
            self._write_pieces(path, chain.from_iterable(pieces))
            self._write_side_files(part.base_offset)
            self.unfinished.clear()

    def _copy_intact(
        self, segment: LogSegment, source: ByteSource, wanted: WantedRange, *, is_last: bool
    ) -> tuple[SalvageScan, tuple[SalvagedPart, ...]]:
        """Copy the intact entries of a segment; scan again if the disk refuses bytes that it gave to the scan."""
        while True:
            scan = salvage_scan(source, segment.allowed, segment.path, wanted=wanted)
            parts = salvaged_parts(segment, source, scan) if scan.starts or is_last else ()
            try:
                for part in parts:
                    self._write_log(source, part)
            except UnreadableError:
                self._drop_files()
            else:
                return scan, parts

    def _write_log(self, source: ByteSource, part: SalvagedPart) -> None:
        path = self.target / segment_file_name(part.base_offset, FileKind.LOG)
        pieces = (piece for start, end in part.ranges for piece in self._pieces(source, start, end))
        self._write_pieces(path, pieces)

    def _pieces(self, source: ByteSource, start: int, end: int) -> Iterator[Buffer]:
        if self.change is None:
            return _pieces(source, start, end)
        return (self.change(frame) for frame in walk(source, start, end))

    def _write_side_files(self, base_offset: int) -> None:
        with open_log(self.target / segment_file_name(base_offset, FileKind.LOG)) as log:
            found = side_files_of(log, base_offset, self.settings, transactions=self.transactions)
        indexes = {FileKind.OFFSET_INDEX: found.offset_index}
        if self.settings.has_time_index:
            indexes[FileKind.TIME_INDEX] = found.time_index
        if found.transaction_index:
            indexes[FileKind.TRANSACTION_INDEX] = found.transaction_index
        for kind, content in indexes.items():
            self._write_file(segment_file_name(base_offset, kind), content)
        for start in found.epoch_starts:
            if start.epoch > max((entry.epoch for entry in self.epochs.entries), default=-1):
                self.epochs.assign(*start)

    def _write_file(self, name: str, data: bytes) -> None:
        self._write_pieces(self.target / name, (memoryview(data),))

    def _write_pieces(self, path: Path, pieces: Iterable[Buffer]) -> None:
        handle = self.files.create_new(path)
        self.unfinished.append(path)
        try:
            for piece in pieces:
                handle.write(piece)
            handle.fsync()
        finally:
            handle.close()

    def drop_unfinished(self) -> None:
        """Remove files that may be incomplete, and the directory if it is empty then."""
        self._drop_files()
        with suppress(OSError):
            self.files.remove_directory(self.target)

    def _drop_files(self) -> None:
        for path in self.unfinished:
            with suppress(OSError):
                self.files.remove(path)
        self.unfinished.clear()

    def finish(self, listings: Iterable[PartitionListing]) -> None:
        """Write the files that belong to the partition and not to a segment, with the first readable metadata."""
        if self.epochs.entries:
            name = FileKind.LEADER_EPOCH_CHECKPOINT.value
            self._write_file(name, encode_leader_epoch_checkpoint(self.epochs.entries))
        for listing in listings:
            metadata = listing.text_files.get(FileKind.PARTITION_METADATA)
            with suppress(SeglogError):
                content = b"" if metadata is None else read_whole(metadata)
                decode_partition_metadata(content)
                self._write_file(FileKind.PARTITION_METADATA.value, content)
                break
        self.files.fsync_directory(self.target)
        if self.is_new:
            self.files.fsync_directory(self.target.parent)


def _pieces(source: ByteSource, start: int, end: int) -> Iterator[memoryview]:
    while start < end:
        first, data = source.window(start, 1)
        yield (piece := data[start - first : end - first][:WRITE_SIZE])
        start += len(piece)


# -- the log that salvage makes of damaged files, as a listing ---------------------------------------------------------
#
# Readers and copies can use it without writing it first. A new segment that is one whole file keeps the path of that
# file. Any other one gets a path at which no file is, and a storage that puts its bytes together.


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


class SplicedFile(Closing):
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
