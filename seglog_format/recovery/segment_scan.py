"""The recovery scan of one segment: which bytes stay, why the others do not, and where it is split (chapter 71).

A segment is split where offsets are too far above its base offset for an index (SEG-LOG-009). The files beside a log,
its indexes and the leader epochs of its batches, are also computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import lacks_end_marker
from seglog_format.codec.decode import verify_checksum
from seglog_format.codec.framing import walk
from seglog_format.errors import CorruptRecordError, FormatError, Location, UnreadableError
from seglog_format.log.index_file import IndexBuilder, encode_offset_index, encode_time_index
from seglog_format.log.listing import CLEANED, DELETED, SWAP
from seglog_format.model import (
    GREATEST_OFFSET,
    INT32_MAX,
    INT64_MAX,
    NO_PRODUCER_ID,
    EpochStart,
    RecordBatchHeader,
    Tail,
)
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.entry_walk import WalkedEntry, indexed_rows, recoverable_frames, walk_entries
from seglog_format.recovery.index_settings import IndexSettings, is_indexable
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY
from seglog_format.storage.byte_source import ByteSource, FirstBytes, Readable, source_of
from seglog_format.storage.files import Copy, Remove, Rename, settled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.engine import IndexedLog, RecoveryKernels, SoundEntries
    from seglog_format.log.index_file import IndexedRow
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.model import AbortedTxn, BatchHeader, Frame
    from seglog_format.storage.files import FileStep


@dataclass(frozen=True, slots=True)
class SegmentSideFiles:
    """The side files of a log.

    Attributes:
        offset_index: the bytes of the offset index.
        time_index: the bytes of the time index.
        transaction_index: the bytes of the transaction index; empty if no aborted transaction ends in the log.
        epoch_starts: where each leader epoch begins that is greater than all earlier ones.
    """

    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    epoch_starts: tuple[EpochStart, ...]


def side_files_of(  # noqa: PLR0913 - all that the side files depend on
    data: Readable,
    base_offset: int,
    settings: IndexSettings,
    *,
    transactions: Transactions,
    end: int | None = None,
    path: str = "",
    kernels: RecoveryKernels | None = None,
) -> SegmentSideFiles:
    """Compute the side files of a segment from its log (SEG-RCV-025).

    Args:
        data: the bytes of the `.log` file.
        base_offset: of the segment.
        settings: of the indexes.
        transactions: those open where the segment begins; they are updated.
        end: end of the log; by default the end of the data, in any case before the first bytes that are no entry.
        path: file name for locations.
        kernels: the fast path; the result is the same without it.
    """
    source = source_of(data, path)
    if kernels is not None:
        part = source if end is None else FirstBytes(source, end)
        interval, is_first = settings.interval_bytes, settings.stores_first_offset
        found = kernels.indexed(part, base_offset, interval, stores_first_offset=is_first)
        if found is not None and not any(recoverable_frames(source, end, path, start=found.end)):
            return side_files_from(found, transactions)
    builder = SideFilesBuilder(base_offset, settings, transactions)
    for frame in recoverable_frames(source, end, path):
        builder.take(WalkedEntry(frame, path))
    return builder.result()


class SideFilesBuilder:
    """Builds the side files of a log during a walk over its entries.

    Args:
        base_offset: of the segment.
        settings: of the indexes.
        transactions: those open where the segment begins; they are updated.
    """

    def __init__(self, base_offset: int, settings: IndexSettings, transactions: Transactions) -> None:
        self._base_offset = base_offset
        self._needs_first_offset = settings.stores_first_offset
        self._indexes = IndexBuilder(settings.interval_bytes, settings.indexed_offset)
        self._transactions = transactions
        self._known_aborts = len(transactions.aborted)
        self._is_in_range = True
        self._epochs: list[EpochStart] = []

    def take(self, entry: WalkedEntry) -> None:
        """Add the next entry."""
        row = entry.row(has_first_offset=self._needs_first_offset)
        is_indexed = is_indexable(row, self._base_offset, stores_first_offset=self._needs_first_offset)
        self._is_in_range = self._is_in_range and is_indexed
        if self._is_in_range:
            self._indexes.add(row)
        _add_epoch(self._epochs, entry.header)
        if entry.header.producer_id > NO_PRODUCER_ID:
            self._transactions.add(entry.header, entry.readable_marker())

    def result(self) -> SegmentSideFiles:
        """Return the side files for the entries added so far."""
        built = self._indexes.finish()
        return SegmentSideFiles(
            encode_offset_index(built.offset_entries, self._base_offset),
            encode_time_index(built.time_entries, self._base_offset),
            encode_transaction_index(self._transactions.aborted[self._known_aborts :]),
            tuple(self._epochs),
        )


def side_files_from(found: IndexedLog, transactions: Transactions) -> SegmentSideFiles:
    """Return the side files of a log that compiled code covers to its end; transactions are updated."""
    known_aborts = len(transactions.aborted)
    transactions.replay(found.transaction_events())
    return SegmentSideFiles(
        found.offset_index,
        found.time_index,
        encode_transaction_index(transactions.aborted[known_aborts:]),
        tuple(EpochStart(*start) for start in found.epoch_starts),
    )


def _add_epoch(epochs: list[EpochStart], header: BatchHeader) -> None:
    if not isinstance(header, RecordBatchHeader) or header.base_offset < 0:
        return
    if header.partition_leader_epoch > (epochs[-1].epoch if epochs else -1):
        epochs.append(EpochStart(header.partition_leader_epoch, header.base_offset))


def encode_transaction_index(entries: Iterable[AbortedTxn]) -> bytes:
    """Encode a transaction index (SEG-TXN-009)."""
    return b"".join(
        TRANSACTION_INDEX_ENTRY.pack(
            entry.version, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        )
        for entry in entries
    )


RECOVERY_PREFIX: Final = "SEG-RCV-"

KEPT_MARKER: Final = "brokers keep this entry, and cut after it"

NO_START: Final = "brokers cannot decode this end marker, and do not start"

UNREADABLE_MARKER_PREFIXES: Final = ("SEG-COD-", "SEG-CTL-006")
"""Ids of errors in an end marker on which brokers fail, instead of taking them for damage."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark on what brokers do where they differ from the plan, or fail.

    Attributes:
        location: of the entry or file.
        requirements: ids of the rules that it breaks.
        text: what brokers do.
    """

    location: Location
    requirements: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.location}: {self.text} [{', '.join(self.requirements)}]"


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a segment after recovery.

    Attributes:
        base_offset: of the segment.
        path: of its `.log` file.
        position: number of bytes that stay.
        size: number of bytes removed.
        next_offset: the first offset after what stays.
        requirements: the rule of recovery that requires the cut (SEG-RCV-003, SEG-RCV-008, SEG-RCV-032 or SEG-RCV-033),
            then the rules that the first removed bytes break.
        reason: description of the error.
    """

    base_offset: int
    path: str
    position: int
    size: int
    next_offset: int
    requirements: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """The result of scanning one segment.

    Attributes:
        base_offset: of the segment.
        next_offset: the first offset after what stays; the base offset if nothing stays.
        cut: None if the whole file stays.
        remarks: on kept entries at which brokers fail, or where brokers cut at another position.
    """

    base_offset: int
    next_offset: int
    cut: Cut | None
    remarks: tuple[Remark, ...] = ()


def scan_segment(
    data: Readable, base_offset: int, path: str = "", *, kernels: RecoveryKernels | None = None
) -> SegmentScan:
    """Scan a segment as recovery does: check sizes, magic, checksums, offset order and end markers, nothing else.

    Args:
        data: the bytes of the `.log` file.
        base_offset: of the segment.
        path: file name for locations.
        kernels: the fast path over entries that recovery keeps unconditionally; the result is the same without it.

    Raises:
        UnreadableError: the disk refuses a part of the log, which is no reason to cut anything (SEG-PDR-022).
    """
    source = source_of(data, path)
    scanner = SegmentScanner(source, base_offset, path)
    pass_over = None if kernels is None else partial(scanner.pass_over, kernels.sound_entries(source, base_offset))
    walk_entries(source, path, [scanner], pass_over=pass_over)
    return scanner.result()


class SegmentScanner:
    """Decides which entries of a segment stay, during a walk over them: those before the first damaged entry.

    Args:
        source: bytes of the log.
        base_offset: of the segment.
        path: file name for locations.

    Attributes:
        position: end of the kept entries.
    """

    def __init__(self, source: ByteSource, base_offset: int, path: str) -> None:
        self.source = source
        self.base_offset = base_offset
        self.path = path
        self.position = 0
        self.last_offset = base_offset - 1
        self.remarks: list[Remark] = []
        self._requirements: tuple[str, ...] = ()
        self._reason = ""

    def pass_over(self, sound: SoundEntries, position: int) -> int:
        """Keep the entries from a position on that compiled code finds sound."""
        self.position, self.last_offset = sound.after(position, self.last_offset)
        return self.position

    def take(self, entry: WalkedEntry) -> bool:
        """Check checksum, offsets and end marker of an entry; return whether it stays."""
        try:
            if not entry.checksum_is_valid:
                verify_checksum(entry.frame, entry.at)
            self._check_offsets(entry.frame, entry.at)
            self._check_end_marker(entry)
        except UnreadableError:
            raise
        except FormatError as error:
            self.end(error)
            return False
        self.last_offset = entry.header.last_offset
        self.position = entry.end
        return True

    def end(self, found: Tail | FormatError) -> None:
        """Record why the bytes from this position on do not stay."""
        if isinstance(found, Tail):
            self._requirements = ("SEG-RCV-033", found.requirement) if found.size else ()
            self._reason = f"{found.kind.value}: {found.size} bytes"
        else:
            self._requirements = found.requirements
            self._reason = f"{found.location.field}: expected {found.expected}, found {found.found}"

    def _check_offsets(self, frame: Frame, at: Location) -> None:
        """Raise at an offset out of order; brokers detect it only in some cases, and then keep less."""
        field = at.at("offset", 0, 8)
        first, last = frame.header.base_offset, frame.header.last_offset
        if first is not None and not self.base_offset <= first <= last:
            self._remark(at, "SEG-LOG-008", "brokers may not start, or keep the entry")
            expected = f"offsets from {self.base_offset} up"
            raise CorruptRecordError(field, "SEG-RCV-032", "SEG-LOG-008", expected=expected, found=f"{first} to {last}")
        if last > GREATEST_OFFSET:
            expected = f"at most {GREATEST_OFFSET}"
            raise CorruptRecordError(field, "SEG-RCV-032", "SEG-LOG-013", expected=expected, found=last)
        if last <= self.last_offset:
            self._remark(at, "SEG-LOG-006", "brokers empty the segment if an index entry is due here")
            expected = f"a last offset above {self.last_offset}"
            raise CorruptRecordError(field, "SEG-RCV-032", "SEG-LOG-006", expected=expected, found=last)
        if last - self.base_offset > INT32_MAX:
            self._remark(at, "SEG-LOG-009", "brokers from 2.0 on split the segment before this entry")

    def _check_end_marker(self, entry: WalkedEntry) -> None:
        at = entry.at
        try:
            marker = entry.end_marker()
        except UnreadableError:
            raise
        except FormatError as error:
            self._raise_marker_error(error, at)
        else:
            if lacks_end_marker(entry.header, marker):
                self._remark(at, "SEG-CTL-003", NO_START)

    def _raise_marker_error(self, error: FormatError, at: Location) -> None:
        first, *_ = error.requirements
        if first.startswith(UNREADABLE_MARKER_PREFIXES):
            self._remark(at, first, NO_START)
            return
        self._remark(at, first, KEPT_MARKER)
        raise CorruptRecordError(
            error.location, "SEG-RCV-008", *error.requirements, expected=error.expected, found=error.found
        ) from None

    def _remark(self, at: Location, requirement: str, text: str) -> None:
        self.remarks.append(Remark(at, (requirement,), text))

    def result(self) -> SegmentScan:
        """Return the result of the walk."""
        next_offset, size = self.last_offset + 1, self.source.size - self.position
        if not size:
            return SegmentScan(self.base_offset, next_offset, None, tuple(self.remarks))
        ids = self._requirements
        ids = ids if ids[0].startswith(RECOVERY_PREFIX) else ("SEG-RCV-003", *ids)
        cut = Cut(self.base_offset, self.path, self.position, size, next_offset, ids, self._reason)
        return SegmentScan(self.base_offset, next_offset, cut, tuple(self.remarks))


SPLIT: Final = "SEG-RCV-022"


@dataclass(frozen=True, slots=True)
class Part:
    """A segment that results from a split: bytes ``start`` to ``end`` of the old segment."""

    base_offset: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Split:
    """A segment and the parts that replace it.

    Attributes:
        files: of the segment.
        parts: by ascending base offset.
    """

    files: SegmentFiles
    parts: tuple[Part, ...]


def split_of(segment: LogSegment) -> Split | None:
    """Split a segment so the offsets of each part can be stored relative to its base offset.

    The first part keeps the name of the segment, even if it is empty: so a crash at any moment leaves
    either the old segment or all its replacements. Brokers name the first part after its first entry.

    Returns:
        The parts; None if one entry alone spans too many offsets.
    """
    parts, base, start, end = [], segment.base_offset, 0, 0
    for row in indexed_rows(segment.source, path=segment.path, has_first_offsets=True):
        if row.last_offset - base > INT32_MAX:
            parts.append(Part(base, start, row.position))
            base, start = row.first_offset, row.position
        if row.last_offset - base > INT32_MAX:
            return None
        end = row.position + row.size
    return Split(segment.paths, (*parts, Part(base, start, end)))


def broker_split_of(segment: LogSegment) -> Split | Remark:
    """Split a segment as brokers do; if they cannot, return why they do not start."""
    at = Location(segment.path)
    try:
        frames = walk(segment.source, path=segment.path)
        last = max((frame.header.next_offset for frame in frames), default=0)
    except FormatError as error:
        return Remark(error.location, error.requirements, "brokers fail on damage in a segment that they have to split")
    if frames.tail.size:
        text = "brokers fail on bytes after the last entry of a segment that they have to split"
        return Remark(Location(segment.path, frames.tail.position), (frames.tail.requirement,), text)
    final = _last_next_offset(segment)
    if final > INT64_MAX or not final - 1 - segment.base_offset > INT32_MAX:  # for brokers negative above 2^63 - 1
        text = f"brokers fail on offsets too far from the base offset, up to {last - 1}, before a smaller one"
        return Remark(at, ("SEG-LOG-009",), text)
    rows = list(indexed_rows(segment.source, path=segment.path, has_first_offsets=True))
    if not all(0 <= row.last_offset - row.first_offset <= INT32_MAX for row in rows):
        return Remark(at, ("SEG-LOG-009",), "brokers fail on an entry that spans too many offsets for any segment")
    parts = _broker_parts(rows)
    bases = [part.base_offset for part in parts]
    if bases != sorted(set(bases)) or bases[0] < 0:
        return Remark(at, ("SEG-LOG-006",), "brokers fail on offsets out of order in a segment that they have to split")
    return Split(segment.paths, tuple(parts))


def _last_next_offset(segment: LogSegment) -> int:
    next_offset = segment.base_offset
    for frame in walk(segment.source, path=segment.path):
        next_offset = frame.header.next_offset
    return next_offset


def _broker_parts(rows: list[IndexedRow]) -> list[Part]:
    parts: list[Part] = []
    base, start = rows[0].first_offset, 0
    for row in rows:
        if not 0 <= row.last_offset - base <= INT32_MAX:
            parts.append(Part(base, start, row.position))
            base, start = row.first_offset, row.position
    return [*parts, Part(base, start, rows[-1].position + rows[-1].size)]


def split_steps(split: Split, directory: Path) -> tuple[FileStep, ...]:
    """Replace a segment by its parts.

    The order is that of every replacement: first all parts are written as `.cleaned` files, which do not count, then
    renamed to `.swap`, which counts once no `.cleaned` file is left. Then the old files are removed, and last the parts
    get their final names. By then every byte of the old segment is in a part.
    """
    names = [segment_file_name(part.base_offset, FileKind.LOG) for part in split.parts]
    pairs = list(zip(names, split.parts, strict=True))
    written = [Copy(split.files.log, part.start, part.end, directory / (name + CLEANED), SPLIT) for name, part in pairs]
    finished = [Rename(directory / (n + CLEANED), directory / (n + SWAP), SPLIT) for n in reversed(names)]
    used = [Rename(directory / (name + SWAP), directory / name, SPLIT) for name in names]
    return (
        *settled(written, directory),
        *settled(finished, directory),
        *settled((Remove(path, SPLIT) for path in _paths(split.files)), directory),
        *settled(used, directory),
    )


def removal_steps(files: SegmentFiles, requirement: str) -> list[FileStep]:
    """Rename the files of a segment for removal, the log last, so no other file is left without its log."""
    return [Rename(path, path.with_name(path.name + DELETED), requirement) for path in _paths(files)]


def _paths(files: SegmentFiles) -> list[Path]:
    paths = (files.snapshot, files.transaction_index, files.time_index, files.offset_index, files.log)
    return [path for path in paths if path is not None]
