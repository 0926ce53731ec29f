"""Salvage: copy the intact entries of a damaged partition directory, byte for byte, with their offsets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_partition_metadata, encode_leader_epoch_checkpoint
from seglog_format.errors import RefusedError, SeglogError, UnreadableError, UsageError, write_errors
from seglog_format.log.transactions import Transactions
from seglog_format.model import INT32_MAX
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.index_settings import IndexSettings, infer_settings
from seglog_format.recovery.opened_segments import opened_segments
from seglog_format.recovery.salvage_by_content import has_wrong_names, placed, replaced_logs
from seglog_format.recovery.salvage_losses import first_offset, with_missing
from seglog_format.recovery.salvage_scan import DamagedRange, salvage_scan
from seglog_format.recovery.segment_files import side_files_of
from seglog_format.state.leader_epochs import LeaderEpochs
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.file_bytes import open_log, read_whole
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.new_directory import require_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import MissingOffsets
    from seglog_format.recovery.salvage_by_content import Placement
    from seglog_format.recovery.salvage_scan import SalvageScan
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.byte_source import ByteSource
    from seglog_format.storage.files import Files

WRITE_SIZE: Final = 1 << 24
"""Maximum number of bytes written at once."""


@dataclass(frozen=True, slots=True)
class SalvagedSegment:
    """What salvage keeps of one segment.

    Attributes:
        log: path of the damaged `.log` file.
        size: size of that file.
        kept_size: number of bytes that were copied.
        entry_count: number of entries that were copied.
        next_offset: the first offset after the copied entries; the base offset if there are none.
        damaged: the ranges that were not copied.
        names: of the new `.log` files; none if nothing of the segment is intact and it is not the last.
    """

    log: Path
    size: int
    kept_size: int
    entry_count: int
    next_offset: int
    damaged: tuple[DamagedRange, ...]
    names: tuple[str, ...]

    @property
    def missing(self) -> tuple[MissingOffsets, ...]:
        """The offsets in the damaged ranges, ascending, as far as they are known."""
        return tuple(dict.fromkeys(damage.missing for damage in self.damaged if damage.missing is not None))


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
    files: Files = LOCAL_FILES,
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

    Yields:
        What was kept of each segment, after its files are written.

    Raises:
        WriteError: while iterating: a file could not be written. The segments yielded before are complete; the files of
            the segment being written are removed.
    """
    offset = None if generation is None else generation.indexed_offset
    with opened_segments(listing) as segments:
        settings = infer_settings(segments, interval_bytes=interval_bytes, indexed_offset=offset)
        writer = _Writer(target, settings, files)
        logs = _logs_by_content(listing, segments)
        try:
            with write_errors("salvage"):
                yield from writer.run_by_content(logs) if logs else writer.run(segments)
                writer.finish(listing)
        except BaseException:
            writer.drop_unfinished()
            raise


def salvageable(listing: PartitionListing) -> Iterator[SalvagedSegment]:
    """Yield what `salvage_partition` keeps, segment by segment. Nothing is written."""
    with opened_segments(listing) as segments:
        if logs := _logs_by_content(listing, segments):
            yield from _reports_by_content(logs, placed(logs, _source))
            return
        for number, segment in enumerate(segments, 1):
            source, refusal = _opened(segment)
            scan = salvage_scan(source, segment.allowed, segment.path)
            parts = salvaged_parts(segment, source, scan) if scan.starts or number == len(segments) else ()
            yield _report_with_missing(segment, source, scan, parts, refusal)


def _logs_by_content(listing: PartitionListing, segments: Sequence[LogSegment]) -> list[LogSegment]:
    """Return the logs of a partition if their names do not say which offsets are in them; else an empty list."""
    replaced = replaced_logs(listing)
    return [*segments, *replaced] if segments and (replaced or has_wrong_names(segments)) else []


def _source(log: LogSegment) -> ByteSource:
    return _opened(log)[0]


def _reports_by_content(logs: Sequence[LogSegment], placement: Placement) -> Iterator[SalvagedSegment]:
    """Yield a report for each log about its entries that were kept, in any of the new segments."""
    parts: dict[int, dict[int, None]] = {}
    for part in placement.parts:
        for piece in part.pieces:
            parts.setdefault(piece.log, {})[part.base_offset] = None
    for number, (log, scan) in enumerate(zip(logs, placement.scans, strict=True)):
        source, refusal = _opened(log)
        damaged = (*scan.damaged, *(() if refusal is None else (refusal,)))
        yield _report(log, source, scan, tuple(parts.get(number, ())), damaged)


def require_apart(path: Path, target: Path) -> None:
    """Refuse a target that is not empty, or is inside the directory to copy from.

    Raises:
        UsageError: the target is not empty, or is inside that directory.
    """
    require_new(target)
    if path.resolve() in (target.resolve(), *target.resolve().parents):
        msg = f"{target} is inside {path}, where nothing is written"
        raise UsageError(msg)


class _Writer:
    def __init__(self, target: Path, settings: IndexSettings, files: Files) -> None:
        self.target = target
        self.settings = settings
        self.files = files
        self.transactions = Transactions()
        self.epochs = LeaderEpochs()
        self.unfinished: list[Path] = []
        self.is_new = not files.exists(target)

    def run(self, segments: Sequence[LogSegment]) -> Iterator[SalvagedSegment]:
        """Write the segments, and yield what was kept of each."""
        self.files.make_directory(self.target)
        for number, segment in enumerate(segments, 1):
            source, refusal = _opened(segment)
            scan, parts = self._copy_intact(segment, source, is_last=number == len(segments))
            for part in parts:
                self._write_side_files(part.base_offset)
            self.unfinished.clear()
            yield _report_with_missing(segment, source, scan, parts, refusal)

    def run_by_content(self, logs: Sequence[LogSegment]) -> Iterator[SalvagedSegment]:
        """Write the entries of logs in the order of their offsets, then report for each log what was kept."""
        self.files.make_directory(self.target)
        placement = placed(logs, _source)
        for part in placement.parts:
            pieces = (_pieces(_source(logs[one.log]), one.start, one.end) for one in part.pieces)
            path = self.target / segment_file_name(part.base_offset, FileKind.LOG)
            self._write_pieces(path, chain.from_iterable(pieces))
            self._write_side_files(part.base_offset)
            self.unfinished.clear()
        yield from _reports_by_content(logs, placement)

    def _copy_intact(
        self, segment: LogSegment, source: ByteSource, *, is_last: bool
    ) -> tuple[SalvageScan, tuple[SalvagedPart, ...]]:
        """Copy the intact entries of a segment; scan again if the disk refuses bytes that it gave to the scan."""
        while True:
            scan = salvage_scan(source, segment.allowed, segment.path)
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
        pieces = (piece for start, end in part.ranges for piece in _pieces(source, start, end))
        self._write_pieces(path, pieces)

    def _write_side_files(self, base_offset: int) -> None:
        with open_log(self.target / segment_file_name(base_offset, FileKind.LOG), copy=True) as log:
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

    def _write_pieces(self, path: Path, pieces: Iterable[memoryview]) -> None:
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

    def finish(self, listing: PartitionListing) -> None:
        """Write the files that belong to the partition and not to a segment."""
        if self.epochs.entries:
            name = FileKind.LEADER_EPOCH_CHECKPOINT.value
            self._write_file(name, encode_leader_epoch_checkpoint(self.epochs.entries))
        metadata = listing.text_files.get(FileKind.PARTITION_METADATA)
        if metadata is not None:
            with suppress(SeglogError):
                content = read_whole(metadata)
                decode_partition_metadata(content)
                self._write_file(FileKind.PARTITION_METADATA.value, content)
        self.files.fsync_directory(self.target)
        if self.is_new:
            self.files.fsync_directory(self.target.parent)


def _opened(segment: LogSegment) -> tuple[ByteSource, DamagedRange | None]:
    """Open a log; if that fails, return an empty source, and the whole file as a damaged range."""
    try:
        return segment.source, None
    except (RefusedError, UnreadableError) as error:
        end = error.location.size
        return MemoryBytes(b"", segment.path), DamagedRange(
            0, end, error.requirements, f"the whole file: {error.found}"
        )


def _pieces(source: ByteSource, start: int, end: int) -> Iterator[memoryview]:
    while start < end:
        first, data = source.window(start, 1)
        yield (piece := data[start - first : end - first][:WRITE_SIZE])
        start += len(piece)


def salvaged_parts(segment: LogSegment, source: ByteSource, scan: SalvageScan) -> tuple[SalvagedPart, ...]:
    """Return the new segments for the intact entries: one, or several if one cannot hold all offsets."""
    parts: list[SalvagedPart] = []
    base, ranges, before = segment.base_offset, list[tuple[int, int]](), segment.base_offset - 1
    for start, end, last in zip(scan.starts, scan.ends, scan.last_offsets, strict=True):
        if last - base > INT32_MAX:
            if ranges:
                parts.append(SalvagedPart(base, tuple(ranges)))
            base, ranges = max(first_offset(source, start), before + 1), []
        before = last
        if ranges and ranges[-1][1] == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return (*parts, SalvagedPart(base, tuple(ranges)))


def _report_with_missing(
    segment: LogSegment,
    source: ByteSource,
    scan: SalvageScan,
    parts: Sequence[SalvagedPart],
    refusal: DamagedRange | None,
) -> SalvagedSegment:
    damaged = (*scan.damaged, *(() if refusal is None else (refusal,)))
    shown = tuple(with_missing(damage, scan, source, segment.allowed) for damage in damaged)
    return _report(segment, source, scan, tuple(part.base_offset for part in parts), shown)


def _report(
    segment: LogSegment,
    source: ByteSource,
    scan: SalvageScan,
    base_offsets: tuple[int, ...],
    damaged: tuple[DamagedRange, ...],
) -> SalvagedSegment:
    return SalvagedSegment(
        log=segment.paths.log,
        size=max(source.size, *(damage.end for damage in damaged), 0),
        kept_size=sum(scan.ends) - sum(scan.starts),
        entry_count=len(scan.starts),
        next_offset=scan.last_offsets[-1] + 1 if scan.last_offsets else segment.base_offset,
        damaged=damaged,
        names=tuple(segment_file_name(base_offset, FileKind.LOG) for base_offset in base_offsets),
    )
