"""Rebuilding of the indexes of segments, without changing a log (SEG-RCV-025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.codec.framing import is_zero
from seglog_format.engine import Engine, engine_for, kernels_of
from seglog_format.errors import FormatError
from seglog_format.log.entry_table import in_order
from seglog_format.log.path_kind import size_of_segments
from seglog_format.log.scanning import storage_for
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.index_settings import infer_settings
from seglog_format.recovery.log_scans import OpenTransactions
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.segment_scan import side_files_of
from seglog_format.storage.byte_source import open_index, starts_with
from seglog_format.storage.file_reader import raised_refusals

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

    from seglog_format.engine import RecoveryKernels
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.state.config import BrokerGeneration


@dataclass(frozen=True, slots=True)
class RebuiltIndex:
    """An index file of a segment, as a rebuild would write it.

    Attributes:
        name: of the file.
        data: its bytes.
        old_size: size of the existing file; None if there is none.
        is_same: whether the existing file already holds these entries; zeros that a running broker preallocated at its
            end do not count.
    """

    name: str
    data: bytes
    old_size: int | None
    is_same: bool

    @property
    def state(self) -> str:
        """The result of the comparison with the existing file, in a word."""
        if self.old_size is None:
            return "missing"
        return "same" if self.is_same else "differs"


@dataclass(frozen=True, slots=True)
class RebuiltSegment:
    """The indexes of one segment.

    Attributes:
        log: path of the `.log` file.
        size: of that file.
        end: end of the entries that could be indexed; there the sizes or offsets show damage, or the log ends.
        indexes: the index files.
        settings: how they were built.
    """

    log: Path
    size: int
    end: int
    indexes: tuple[RebuiltIndex, ...]
    settings: IndexSettings


def rebuilt_indexes(
    listing: PartitionListing,
    *,
    only: Container[str] | None = None,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    engine: Engine = Engine.AUTO,
) -> Iterator[RebuiltSegment]:
    """Build the indexes of a partition's segments. Nothing is written.

    Args:
        listing: of the partition directory.
        only: names of the `.log` files to read; all by default.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        engine: the engine that reads the logs; the indexes do not depend on it.

    Raises:
        UnreadableError: while iterating: the disk refuses bytes that the indexes depend on (SEG-PDR-022).
    """
    offset = None if generation is None else generation.indexed_offset
    wanted = [files for files in listing.segments if only is None or files.log.name in only]
    choice = engine_for(engine, size_of_segments(wanted))
    kernels = kernels_of(choice)
    with opened_segments(listing, storage=storage_for(choice.engine)) as segments:
        settings = infer_settings(segments, interval_bytes=interval_bytes, indexed_offset=offset)
        open_transactions = OpenTransactions(segments, listing.snapshots)
        for segment in segments:
            if only is None or segment.paths.log.name in only:
                with raised_refusals():
                    transactions = open_transactions.at(segment.base_offset)
                    rebuilt = _rebuilt(segment, settings, transactions, kernels)
                    open_transactions.carry_on(segment.allowed.last + 1, transactions)
                yield rebuilt


def _rebuilt(
    segment: LogSegment, settings: IndexSettings, transactions: Transactions, kernels: RecoveryKernels | None
) -> RebuiltSegment:
    end, files = indexable_end(segment, kernels), segment.paths
    found = side_files_of(
        segment.source,
        segment.base_offset,
        settings,
        transactions=transactions,
        end=end,
        path=segment.path,
        kernels=kernels,
    )
    indexes = [_index(files, FileKind.OFFSET_INDEX, files.offset_index, found.offset_index)]
    if settings.has_time_index:
        indexes.append(_index(files, FileKind.TIME_INDEX, files.time_index, found.time_index))
    if found.transaction_index or files.transaction_index is not None:
        kind = FileKind.TRANSACTION_INDEX
        indexes.append(_index(files, kind, files.transaction_index, found.transaction_index))
    return RebuiltSegment(files.log, segment.source.size, end, tuple(indexes), settings)


def indexable_end(segment: LogSegment, kernels: RecoveryKernels | None = None) -> int:
    """Return the end of the entries whose offsets can be indexed; damage that only a checksum shows is ignored."""
    end, previous = 0, segment.base_offset - 1
    if kernels is not None:
        end, previous = kernels.ordered_end(segment.source, segment.allowed.first, segment.allowed.last)
    frames = recoverable_frames(segment.source, path=segment.path, start=end)
    try:
        for frame in in_order(frames, segment.path, segment.allowed, previous):
            end = frame.end
    except FormatError:
        return end
    return end


def _index(files: SegmentFiles, kind: FileKind, path: Path | None, data: bytes) -> RebuiltIndex:
    name = segment_file_name(files.base_offset, kind)
    if path is None:
        return RebuiltIndex(name, data, None, is_same=False)
    with open_index(path) as old:
        is_same = starts_with(old, data) and is_zero(old, len(data), old.size)
        return RebuiltIndex(name, data, old.size, is_same)
