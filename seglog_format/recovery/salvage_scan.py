"""Search for the intact entries of a damaged `.log` file, before and after the damage.

Recovery keeps only the entries before the first damage, because a log must not have unknown holes. A user without
another copy wants the later entries also. An entry counts as intact if its checksum is right and its offsets are
possible. After damage that may include a size field, the next entry is searched for byte by byte. The value of a record
may look like an entry, so the result marks what was found by searching.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.framing import frame_at
from seglog_format.errors import FormatError, SeglogError
from seglog_format.log.entry_table import EVERYTHING, OffsetRange, WantedRange, bounds_of
from seglog_format.log.search import EntrySearch, reason_of
from seglog_format.model import (
    GREATEST_OFFSET,
    Frame,
    MissingOffsets,
    RecordBatchHeader,
    Tail,
    TailKind,
    TimestampType,
)
from seglog_format.recovery.entry_walk import row_of
from seglog_format.storage.byte_source import ByteSource, Readable, source_of

if TYPE_CHECKING:
    from seglog_format.model import BatchHeader


ANY_OFFSET: Final = OffsetRange(0)
SIZE_IN_DOUBT: Final = frozenset({"SEG-BAT-003", "SEG-MSG-004", "SEG-PDR-022"})
"""Errors of an entry after which its size field is not trusted."""
PROVING_COUNT: Final = 2
"""Number of successive entries that show the end of a range: no checksum covers an offset."""


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a log that are not kept.

    Attributes:
        start: position of the first byte.
        end: position of the byte after the last.
        requirements: ids of the rules that the bytes at the start break.
        reason: description of the error.
        is_searched: whether the end of the range was found by searching, not by a size field.
        missing: offsets between the intact entries around the range; None if they are not known, or there are none.
            Some of them may never have had a record, or compaction may have removed it.
        is_tail: whether it is what may follow the last entry of a whole log: an incomplete entry, or zeros.
        is_replaced: whether these are whole entries of a log that a `.swap` file replaces, as in compaction.
    """

    start: int
    end: int
    requirements: tuple[str, ...]
    reason: str
    is_searched: bool = False
    missing: MissingOffsets | None = None
    is_tail: bool = False
    is_replaced: bool = False

    @property
    def is_loss(self) -> bool:
        """Whether something is known to be lost: a tail is no loss, unless other files name its offsets."""
        return not (self.is_tail or self.is_replaced) or self.missing is not None


@dataclass(slots=True)
class SalvageScan:
    """The parts of one `.log` file that can be kept.

    Attributes:
        starts: positions of the intact entries, ascending.
        ends: end position of each intact entry.
        last_offsets: last offset of each intact entry.
        damaged: all other bytes as ranges, ascending.
        offsets: that the part can hold which was read.
    """

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    last_offsets: array[int] = field(default_factory=lambda: array("q"))
    damaged: list[DamagedRange] = field(default_factory=list)
    offsets: OffsetRange = ANY_OFFSET

    def add(self, frame: Frame) -> None:
        """Add an intact entry."""
        self.starts.append(frame.position)
        self.ends.append(frame.end)
        self.last_offsets.append(frame.header.last_offset)


def salvage_scan(
    data: Readable,
    allowed: OffsetRange,
    path: str = "",
    *,
    is_for_brokers: bool = False,
    wanted: WantedRange = EVERYTHING,
) -> SalvageScan:
    """Find the intact entries of a log, including those after ranges that the disk refuses (SEG-PDR-022).

    Args:
        data: the bytes of the `.log` file.
        allowed: offsets that the segment can hold.
        path: file name for locations.
        is_for_brokers: whether end markers that brokers cannot read are left out.
        wanted: only entries with records that may be in this range.
    """
    found = _Salvager(source_of(data, path), allowed, path, wanted, is_for_brokers=is_for_brokers).run()
    return _in_order(found)


class _Salvager(EntrySearch):
    def __init__(
        self, source: ByteSource, allowed: OffsetRange, path: str, wanted: WantedRange, *, is_for_brokers: bool
    ) -> None:
        super().__init__(source, allowed, path, is_for_brokers=is_for_brokers)
        self.wanted = wanted
        self.position, reached, self.end = bounds_of(wanted, source, path, allowed)
        last = allowed.last if self.end is None else min(allowed.last, self.end - 1)
        self.found = SalvageScan(offsets=OffsetRange(max(reached, wanted.from_offset or 0), last))
        self.past_count = 0

    def run(self) -> SalvageScan:
        """Scan the part of the file that the range needs."""
        position = self.position
        while position < self.source.size and self.past_count < PROVING_COUNT:
            position = self._step(position)
        return self.found

    def _take(self, frame: Frame) -> None:
        """Keep an intact entry if it may hold wanted records."""
        header, end = frame.header, GREATEST_OFFSET + 1 if self.end is None else self.end
        first = header.last_offset if header.base_offset is None else header.base_offset
        if header.base_offset is None and first >= end:  # of a wrapper, that is its last offset
            with suppress(SeglogError):
                first = first_offset(self.source, frame.position)
        self.past_count = self.past_count + 1 if header.next_offset >= end else 0
        may_be_in = self.wanted.may_be_in(header) and not _is_newer(header, self.wanted.until_ms)
        if first < end and self.wanted.overlaps(first, header.next_offset) and may_be_in:
            self.found.add(frame)

    def _step(self, position: int) -> int:
        """Keep or skip the bytes at a position; return where to continue."""
        try:
            found = frame_at(self.source, position, self.source.size, self.path)
        except FormatError as error:
            return self._search(position, error.requirements, reason_of(error))
        if isinstance(found, Tail):
            return self._skip_tail(found)
        requirement, reason = self.violation(found)
        if not requirement:
            self._take(found)
            return found.end
        if requirement in SIZE_IN_DOUBT and not self.continues_at(found.end):
            return self._search(position, (requirement,), reason)
        self.found.damaged.append(DamagedRange(position, found.end, (requirement,), reason))
        return found.end

    def _skip_tail(self, tail: Tail) -> int:
        if tail.kind is TailKind.PARTIAL:
            reason = f"an entry that would end beyond the file: {tail.size} bytes"
            end = self._search(tail.position, (tail.requirement,), reason)
            is_tail = end == self.source.size and self.budget > 0
            self.found.damaged[-1] = replace(self.found.damaged[-1], is_tail=is_tail)
            return end
        end = tail.position + tail.size
        if tail.size:
            reason = f"{tail.kind.value}: {tail.size} bytes"
            self.found.damaged.append(DamagedRange(tail.position, end, (tail.requirement,), reason, is_tail=True))
        return end

    def _search(self, start: int, requirements: tuple[str, ...], reason: str) -> int:
        """Skip everything up to the next intact entry."""
        end = next(self.candidates(start + 1), self.source.size)
        reason = reason if self.budget > 0 else f"{reason}; the search for a next entry ended at its limit"
        is_searched = end < self.source.size
        self.found.damaged.append(DamagedRange(start, end, requirements, reason, is_searched))
        return end


def _is_newer(header: BatchHeader, until_ms: int | None) -> bool:
    """Return whether the first record of a batch is not older than a timestamp; False if its header does not say."""
    if until_ms is None or not isinstance(header, RecordBatchHeader) or header.delete_horizon_ms is not None:
        return False
    is_stamped = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    return (header.max_timestamp_ms if is_stamped else header.base_timestamp_ms) >= until_ms


def _in_order(found: SalvageScan) -> SalvageScan:
    """Keep the longest sequence of entries whose last offsets increase; count the others as damaged.

    No checksum covers offsets. If the offset of an entry was damaged to a large one and that entry were kept because it
    comes first, all entries after it would be lost.
    """
    kept = longest_increasing(found.last_offsets)
    if len(kept) == len(found.starts):
        return found
    chosen = SalvageScan(damaged=list(found.damaged), offsets=found.offsets)
    stays = set(kept)
    for number, (start, end, last) in enumerate(zip(found.starts, found.ends, found.last_offsets, strict=True)):
        if number in stays:
            chosen.starts.append(start)
            chosen.ends.append(end)
            chosen.last_offsets.append(last)
        else:
            reason = f"last offset {last} is out of order among those around it"
            chosen.damaged.append(DamagedRange(start, end, ("SEG-LOG-006",), reason))
    chosen.damaged.sort(key=lambda damage: damage.start)
    return chosen


def longest_increasing(values: array[int]) -> list[int]:
    """Return the indexes of a longest strictly increasing subsequence of values, ascending."""
    tops: list[int] = []
    indexes: list[int] = []
    before = array("q", bytes(8 * len(values)))
    for index, value in enumerate(values):
        length = bisect_left(tops, value)
        before[index] = indexes[length - 1] if length else -1
        if length == len(tops):
            tops.append(value)
            indexes.append(index)
        elif value < tops[length]:  # the first of equal values stays
            tops[length], indexes[length] = value, index
    chosen, index = [], indexes[-1] if indexes else -1
    while index >= 0:
        chosen.append(index)
        index = before[index]
    return chosen[::-1]


# -- the offsets in ranges that salvage does not copy, as far as the intact entries around a range show them -----------


def with_missing(damage: DamagedRange, scan: SalvageScan, source: ByteSource, allowed: OffsetRange) -> DamagedRange:
    """Return a damaged range with the offsets between the intact entries before and after it.

    If there is no such entry, the base offset of the segment or of the next segment is the limit. Ranges without an
    intact entry between them get the same offsets.

    Args:
        damage: the range.
        scan: of the file.
        source: the bytes of the file.
        allowed: offsets that the segment can hold.
    """
    following = bisect_left(scan.starts, damage.end)
    first = scan.last_offsets[following - 1] + 1 if following else allowed.first
    after = _offset_after(following, scan, source, allowed)
    return replace(damage, missing=None if after is None or after <= first else MissingOffsets(first, after))


def _offset_after(number: int, scan: SalvageScan, source: ByteSource, allowed: OffsetRange) -> int | None:
    """Return the first offset of the intact entry with a number, or of the next segment; None if it is not known."""
    if number == len(scan.starts):
        return allowed.last + 1 if allowed.last < GREATEST_OFFSET else None
    with suppress(SeglogError):
        return first_offset(source, scan.starts[number])
    return None


def first_offset(source: ByteSource, position: int) -> int:
    """Return the first offset of the intact entry at a position.

    Raises:
        FormatError: its records cannot be read.
    """
    frame = frame_at(source, position, source.size, source.path)
    assert isinstance(frame, Frame)
    return row_of(frame, source.path, has_first_offset=True).first_offset
