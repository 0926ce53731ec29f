"""Search for the intact entries of a damaged `.log` file, before and after the damage.

Recovery keeps only the entries before the first damage, because a log must not have unknown holes. A user without
another copy wants the later entries also. An entry counts as intact if its checksum is right and its offsets are
possible. After damage that may include a size field, the next entry is searched for byte by byte. The value of a record
may look like an entry, so the result marks what was found by searching.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import end_marker_of, lacks_end_marker
from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import HEADERS, MIN_ENTRY_SIZE, frame_at, whole_frame
from seglog_format.errors import (
    CorruptRecordError,
    FormatError,
    Location,
    SeglogError,
    TruncatedError,
    UnreadableError,
)
from seglog_format.log.entry_table import OffsetRange
from seglog_format.model import (
    ENTRY_PREFIX_SIZE,
    GREATEST_OFFSET,
    INT32_MAX,
    Frame,
    MissingOffsets,
    RecordBatchHeader,
    Tail,
    TailKind,
)
from seglog_format.recovery.entry_walk import row_of
from seglog_format.schema.fixed_fields import BYTES_LENGTH, ENTRY_PREFIX, MAGIC_POSITION
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.storage.byte_source import ByteSource, Readable


SEARCH_BUDGET: Final = 16
"""Maximum bytes for checksums during a search, as a multiple of the file's size."""

MIN_BUDGET: Final = 1 << 26

PATTERN_SIZE: Final = ENTRY_PREFIX.size
"""Number of bytes that are compared to see whether an entry may begin at a position."""

SEARCHED_SIZE: Final = 1 << 16
"""Maximum number of bytes searched at once."""

ZEROS: Final = bytes(SEARCHED_SIZE)

SIZE_IN_DOUBT: Final = frozenset({"SEG-BAT-003", "SEG-MSG-004", "SEG-PDR-022"})
"""Errors of an entry after which its size field is not trusted."""

SAME_UPPER_HALF: Final = 4
"""If the upper 4 bytes of possible offsets have no more values than this, only those values are searched for."""


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
    """

    start: int
    end: int
    requirements: tuple[str, ...]
    reason: str
    is_searched: bool = False
    missing: MissingOffsets | None = None
    is_tail: bool = False

    @property
    def is_loss(self) -> bool:
        """Whether something is known to be lost: a tail is no loss, unless other files name its offsets."""
        return not self.is_tail or self.missing is not None


@dataclass(slots=True)
class SalvageScan:
    """The parts of one `.log` file that can be kept.

    Attributes:
        starts: positions of the intact entries, ascending.
        ends: end position of each intact entry.
        last_offsets: last offset of each intact entry.
        damaged: all other bytes as ranges, ascending.
    """

    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    last_offsets: array[int] = field(default_factory=lambda: array("q"))
    damaged: list[DamagedRange] = field(default_factory=list)

    def add(self, frame: Frame) -> None:
        """Add an intact entry."""
        self.starts.append(frame.position)
        self.ends.append(frame.end)
        self.last_offsets.append(frame.header.last_offset)


def salvage_scan(data: Readable, allowed: OffsetRange, path: str = "", *, is_for_brokers: bool = False) -> SalvageScan:
    """Find the intact entries of a log, including those after ranges that the disk refuses (SEG-PDR-022).

    Args:
        data: the bytes of the `.log` file.
        allowed: offsets that the segment can hold.
        path: file name for locations.
        is_for_brokers: whether end markers that brokers cannot read are left out.
    """
    found = _Salvager(source_of(data, path), allowed, path, is_for_brokers=is_for_brokers).run()
    return _in_order(found)


def next_entry(source: ByteSource, start: int, allowed: OffsetRange) -> int:
    """Search byte by byte for the start of the next intact entry; return the size of the source if there is none.

    Args:
        source: the bytes of the `.log` file.
        start: position from which on to search.
        allowed: offsets that the segment can hold.
    """
    return next(_Salvager(source, allowed, source.path).candidates(start), source.size)


def unexpected_end(
    tail: Frame | Tail, source: ByteSource, allowed: OffsetRange, path: str, *, is_last: bool
) -> FormatError | None:
    """Return why a log must not end with an entry that is cut short; None if it may, or has no such end.

    The log of a broker that was killed may end so, and that of a broker that is writing. In a segment that others
    follow, or with intact entries after it, it is damage: the size field is wrong, or bytes were lost.

    Args:
        tail: what follows the last whole entry.
        source: the bytes of the log.
        allowed: offsets that the segment can hold.
        path: of the log, for the error.
        is_last: whether no other segment follows.

    Returns:
        An error of SEG-LOG-004.
    """
    if not isinstance(tail, Tail) or tail.kind is not TailKind.PARTIAL:
        return None
    at = Location(path, tail.position)
    if not is_last:
        found = f"{tail.size} bytes of an entry that is cut short, though other segments follow"
        return TruncatedError(at, "SEG-LOG-004", expected="whole entries", found=found)
    later = next_entry(source, tail.position + 1, allowed)
    if later >= source.size:
        return None
    found = f"one that ends beyond the file, though intact entries follow from {later} on"
    return CorruptRecordError(at.at("batch_length", 8, 4), "SEG-LOG-004", expected="a size that fits", found=found)


def hidden_entries(segments: Sequence[LogSegment]) -> FormatError | None:
    """Return why a log must not end where its last segment ends for readers, as `unexpected_end` does; else None."""
    for segment in segments[-1:]:
        if segment.tail is not None:
            return unexpected_end(segment.tail, segment.source, segment.allowed, segment.path, is_last=True)
    return None


def begins_entry(source: ByteSource, start: int, first_offset: int) -> bool:
    """Return whether the header of an entry, whole or not, seems to be behind a position.

    Args:
        source: the bytes of the `.log` file.
        start: position from which on to search.
        first_offset: entries with lower offsets do not count.
    """
    possible = _Salvager(source, OffsetRange(first_offset, GREATEST_OFFSET), source.path).possible_entries(start)
    return any(offset >= first_offset and _seems_header(source, at, size) for at, offset, size in possible)


def _seems_header(source: ByteSource, position: int, size: int) -> bool:
    """Return whether the fields at a position have values that belong together."""
    magic = source.view(position, position + PATTERN_SIZE)[MAGIC_POSITION]
    end = position + HEADERS[magic][0].size
    if end + BYTES_LENGTH.size > source.size or size > source.size:
        return False
    with suppress(SeglogError):
        header = whole_frame(source, position, magic, Location(source.path, position)).header
        if isinstance(header, RecordBatchHeader):
            return not header.unknown_attribute_bits and 0 <= header.records_count <= header.last_offset_delta + 1
        key_size = BYTES_LENGTH.unpack_from(source.view(end, end + BYTES_LENGTH.size))[0]
        return not header.unknown_attribute_bits and -1 <= key_size < size
    return False


class _Salvager:
    def __init__(self, source: ByteSource, allowed: OffsetRange, path: str, *, is_for_brokers: bool = False) -> None:
        self.source = source
        self.allowed = allowed
        self.path = path
        self.is_for_brokers = is_for_brokers
        self.found = SalvageScan()
        self.budget = max(source.size * SEARCH_BUDGET, MIN_BUDGET)
        self.pattern = _pattern(allowed)

    def run(self) -> SalvageScan:
        """Scan the file."""
        position = 0
        while position < self.source.size:
            position = self._step(position)
        return self.found

    def _step(self, position: int) -> int:
        """Keep or skip the bytes at a position; return where to continue."""
        try:
            found = frame_at(self.source, position, self.source.size, self.path)
        except FormatError as error:
            return self._search(position, error.requirements, _reason(error))
        if isinstance(found, Tail):
            return self._skip_tail(found)
        requirement, reason = self._violation(found)
        if not requirement:
            self.found.add(found)
            return found.end
        if requirement in SIZE_IN_DOUBT and not self._continues_at(found.end):
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

    def _violation(self, frame: Frame) -> tuple[str, str]:
        """Return the requirement that an entry breaks, and how it breaks it; empty texts if it breaks none."""
        header, allowed = frame.header, self.allowed
        try:
            is_valid = checksum_is_valid(frame)
        except UnreadableError as error:
            return error.requirements[0], _reason(error)
        if not is_valid:
            return ("SEG-BAT-003" if isinstance(header, RecordBatchHeader) else "SEG-MSG-004"), "a wrong checksum"
        first = header.last_offset if header.base_offset is None else header.base_offset
        if not allowed.first <= first <= header.last_offset:
            return "SEG-LOG-008", f"offsets {first} to {header.last_offset} in a segment from {allowed.first} on"
        if header.last_offset > GREATEST_OFFSET:
            return "SEG-LOG-013", f"last offset {header.last_offset}, above {GREATEST_OFFSET}"
        if header.last_offset > allowed.last:
            return "SEG-PDR-013", f"last offset {header.last_offset}, above {allowed.last}"
        return self._unreadable_marker(frame) if self.is_for_brokers else ("", "")

    def _unreadable_marker(self, frame: Frame) -> tuple[str, str]:
        """Return why brokers cannot read the end marker in an entry; empty texts if they can, or it has none."""
        try:
            marker = end_marker_of(frame, Location(self.path, frame.position))
        except FormatError as error:
            return error.requirements[0], f"an end marker that brokers cannot read: {_reason(error)}"
        is_lacking = lacks_end_marker(frame.header, marker)
        return ("SEG-CTL-003", "a producer's control batch without an end marker") if is_lacking else ("", "")

    def _continues_at(self, position: int) -> bool:
        """Return whether an intact entry begins at a position, or the file ends there."""
        if position == self.source.size:
            return True
        try:
            found = frame_at(self.source, position, self.source.size, self.path)
        except FormatError:
            return False
        return isinstance(found, Frame) and not self._violation(found)[0]

    def _search(self, start: int, requirements: tuple[str, ...], reason: str) -> int:
        """Skip everything up to the next intact entry."""
        end = next(self.candidates(start + 1), self.source.size)
        reason = reason if self.budget > 0 else f"{reason}; the search for a next entry ended at its limit"
        is_searched = end < self.source.size
        self.found.damaged.append(DamagedRange(start, end, requirements, reason, is_searched))
        return end

    def candidates(self, start: int) -> Iterator[int]:
        """Yield the positions of intact entries, searching from a position on."""
        for position, _, size in self.possible_entries(start):
            if MIN_ENTRY_SIZE <= size <= self.source.size - position - ENTRY_PREFIX_SIZE:
                self.budget -= size
                if self.budget <= 0:
                    return
                if self._continues_at(position):
                    yield position

    def possible_entries(self, position: int) -> Iterator[tuple[int, int, int]]:
        """Yield position, offset and size of what looks like an entry; skip ranges that the disk refuses."""
        while position + PATTERN_SIZE <= self.source.size:
            try:
                start, data = self.source.window(position, PATTERN_SIZE)
            except UnreadableError as error:
                position = error.location.position + error.location.size
                continue
            part = data[position - start :][:SEARCHED_SIZE]
            if bytes(part) != ZEROS[: len(part)]:  # no entry begins with so many zeros
                for match in self.pattern.finditer(part):
                    offset, size, _, _ = ENTRY_PREFIX.unpack_from(part, match.start())
                    yield position + match.start(), offset, size
            position += len(part) - PATTERN_SIZE + 1


def _reason(error: FormatError) -> str:
    if isinstance(error, UnreadableError):
        at = error.location
        return f"bytes {at.position} to {at.position + at.size} cannot be read: {error.found}"
    return f"{error.location.field}: expected {error.expected}, found {error.found}"


def _pattern(allowed: OffsetRange) -> re.Pattern[bytes]:
    """Return a pattern of the first 17 bytes of an entry: a possible offset, a size that is not 0, a magic."""
    last = min(allowed.last, allowed.first + INT32_MAX)
    halves = range(allowed.first >> 32, (last >> 32) + 1)
    if len(halves) <= SAME_UPPER_HALF:
        upper = b"|".join(re.escape(half.to_bytes(4, "big")) for half in halves)
    else:
        upper = rb"[\x00-\x7f].{3}"
    return re.compile(rb"(?=(?:" + upper + rb").{4}(?!\x00{4})[\x00-\x7f].{7}[\x00-\x02])", re.DOTALL)


def _in_order(found: SalvageScan) -> SalvageScan:
    """Keep the longest sequence of entries whose last offsets increase; count the others as damaged.

    No checksum covers offsets. If the offset of an entry was damaged to a large one and that entry were kept because it
    comes first, all entries after it would be lost.
    """
    kept = longest_increasing(found.last_offsets)
    if len(kept) == len(found.starts):
        return found
    chosen = SalvageScan(damaged=list(found.damaged))
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
