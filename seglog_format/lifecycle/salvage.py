"""Copying what is intact in a damaged partition directory into a new one, byte for byte, offsets kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_partition_metadata, encode_leader_epoch_checkpoint
from seglog_format.errors import SeglogError, write_errors
from seglog_format.lifecycle.files import LOCAL_FILES
from seglog_format.lifecycle.index_settings import IndexSettings, infer_settings, row_of
from seglog_format.lifecycle.leader_epochs import LeaderEpochs
from seglog_format.lifecycle.recovery_apply import opened_segments
from seglog_format.lifecycle.salvage_scan import salvage_scan
from seglog_format.lifecycle.segment_files import side_files_of
from seglog_format.log.file_bytes import open_bytes, open_whole
from seglog_format.log.transactions import Transactions
from seglog_format.model import INT32_MAX, Frame
from seglog_format.names import FileKind, segment_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.lifecycle.config import BrokerGeneration
    from seglog_format.lifecycle.files import FileHandle, Files
    from seglog_format.lifecycle.salvage_scan import DamagedRange, SalvageScan
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment

WRITE_SIZE: Final = 1 << 24
"""So many bytes are written at once."""


@dataclass(frozen=True, slots=True)
class SalvagedSegment:
    """What was kept of one segment.

    Attributes:
        log: path of the damaged `.log` file.
        size: bytes of it.
        kept_size: bytes that were copied.
        entry_count: entries that were copied.
        next_offset: the first offset after them; the base offset where there are none.
        damaged: what was not copied.
        names: of the new `.log` files; none for a segment of which nothing is left, but for the last one.
    """

    log: Path
    size: int
    kept_size: int
    entry_count: int
    next_offset: int
    damaged: tuple[DamagedRange, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SalvagedPart:
    """A new segment: its base offset, and the ranges of the old file that it consists of."""

    base_offset: int
    ranges: tuple[tuple[int, int], ...]


def salvage_partition(
    listing: PartitionListing,
    target: Path,
    *,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    copy: bool = False,
    files: Files = LOCAL_FILES,
) -> Iterator[SalvagedSegment]:
    """Copy the intact entries of a partition, and build what belongs beside them.

    Producer snapshots are not copied: a broker computes them. Of the other files `partition.metadata` is, where it can
    be read, and leader epochs are taken from the entries.

    Args:
        listing: of the damaged directory, in which nothing is changed.
        target: the new directory; it has to be new or empty (see `require_new`), and outside of the other one.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        copy: read files whole instead of mapping them.
        files: the file layer to write through.

    Yields:
        What was kept, segment by segment, when it is written.

    Raises:
        WriteError: while iterating: a file could not be written. The segments that were told are whole; of the one
            that was at work, nothing is left.
    """
    offset = None if generation is None else generation.indexed_offset
    with opened_segments(listing, copy=copy) as segments:
        settings = infer_settings(segments, interval_bytes=interval_bytes, indexed_offset=offset)
        writer = _Writer(target, settings, files)
        try:
            with write_errors("salvage"):
                yield from writer.run(segments)
                writer.finish(listing)
        except BaseException:
            writer.drop_unfinished()
            raise


class _Writer:
    def __init__(self, target: Path, settings: IndexSettings, files: Files) -> None:
        self.target = target
        self.settings = settings
        self.files = files
        self.transactions = Transactions()
        self.epochs = LeaderEpochs()
        self.unfinished: list[Path] = []

    def run(self, segments: Sequence[LogSegment]) -> Iterator[SalvagedSegment]:
        """Write segment after segment."""
        self.files.make_directory(self.target)
        for number, segment in enumerate(segments, 1):
            scan = salvage_scan(segment.data, segment.allowed, segment.path)
            is_needed = scan.starts or number == len(segments)
            parts = salvaged_parts(segment, scan) if is_needed else ()
            for part in parts:
                self._write(segment.data, part)
            self.unfinished.clear()
            yield _salvaged(segment, scan, parts)

    def _write(self, data: memoryview, part: SalvagedPart) -> None:
        path = self.target / segment_file_name(part.base_offset, FileKind.LOG)
        self._write_pieces(path, (data[start:end] for start, end in part.ranges))
        with open_bytes(path) as log:
            self._write_side_files(log.data, part.base_offset)

    def _write_side_files(self, data: memoryview, base_offset: int) -> None:
        found = side_files_of(data, base_offset, self.settings, transactions=self.transactions)
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

    def _write_pieces(self, path: Path, pieces: Iterable[memoryview]) -> None:
        handle = self.files.create_new(path)
        self.unfinished.append(path)
        try:
            for piece in pieces:
                _write_range(handle, piece)
            handle.fsync()
        finally:
            handle.close()

    def drop_unfinished(self) -> None:
        """Remove the files that are not known to be whole, and a directory that is empty then."""
        for path in self.unfinished:
            with suppress(OSError):
                self.files.remove(path)
        with suppress(OSError):
            self.files.remove_directory(self.target)

    def finish(self, listing: PartitionListing) -> None:
        """Write what belongs to the partition as a whole."""
        if self.epochs.entries:
            name = FileKind.LEADER_EPOCH_CHECKPOINT.value
            self._write_file(name, encode_leader_epoch_checkpoint(self.epochs.entries))
        metadata = listing.text_files.get(FileKind.PARTITION_METADATA)
        if metadata is not None:
            with suppress(SeglogError), open_whole(metadata) as source:
                decode_partition_metadata(source.data)
                self._write_file(FileKind.PARTITION_METADATA.value, bytes(source.data))
        self.files.fsync_directory(self.target)


def _write_range(handle: FileHandle, data: memoryview) -> None:
    for start in range(0, len(data), WRITE_SIZE):
        handle.write(data[start : start + WRITE_SIZE])


def salvaged_parts(segment: LogSegment, scan: SalvageScan) -> tuple[SalvagedPart, ...]:
    """The segments that the intact entries of one make: one, or several where offsets reach too far for one."""
    parts: list[SalvagedPart] = []
    base, ranges, before = segment.base_offset, list[tuple[int, int]](), segment.base_offset - 1
    for start, end, last in zip(scan.starts, scan.ends, scan.last_offsets, strict=True):
        if last - base > INT32_MAX:
            if ranges:
                parts.append(SalvagedPart(base, tuple(ranges)))
            base, ranges = max(_first_offset(segment, start), before + 1), []
        before = last
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return (*parts, SalvagedPart(base, tuple(ranges)))


def _first_offset(segment: LogSegment, position: int) -> int:
    frame = segment.frame_at(position)
    assert isinstance(frame, Frame)
    return row_of(frame, segment.path, has_first_offset=True).first_offset


def _salvaged(segment: LogSegment, scan: SalvageScan, parts: Sequence[SalvagedPart]) -> SalvagedSegment:
    return SalvagedSegment(
        log=segment.paths.log,
        size=len(segment.data),
        kept_size=sum(scan.ends) - sum(scan.starts),
        entry_count=len(scan.starts),
        next_offset=scan.last_offsets[-1] + 1 if scan.last_offsets else segment.base_offset,
        damaged=tuple(scan.damaged),
        names=tuple(segment_file_name(part.base_offset, FileKind.LOG) for part in parts),
    )
