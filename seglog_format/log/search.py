"""Searches in bytes: which batches cannot hold what is wanted in records, and where the next intact entry begins."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import end_marker_of, lacks_end_marker
from seglog_format.codec.decode import checksum_is_valid, records_section, verify_checksum
from seglog_format.codec.framing import HEADERS, MIN_ENTRY_SIZE, frame_at, whole_frame
from seglog_format.errors import CorruptRecordError, FormatError, Location, SeglogError, TruncatedError, UnreadableError
from seglog_format.log.entry_table import OffsetRange, is_within
from seglog_format.model import ENTRY_PREFIX_SIZE, GREATEST_OFFSET, INT32_MAX, Frame, RecordBatchHeader, Tail, TailKind
from seglog_format.schema.fixed_fields import BYTES_LENGTH, ENTRY_PREFIX, MAGIC_POSITION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.record_model import Message, Record
    from seglog_format.storage.byte_source import ByteSource

FIELDS: Final = ("key", "value", "header")
"""The parts of a record that are searched; a header by its key and by its value."""
MAX_SEARCHED_SIZE: Final = 2**26
"""Maximum size of a batch that is searched as a whole before it is decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a record has to hold.

    Attributes:
        pattern: bytes, or an expression for bytes; a field that is null never holds it.
        fields: some of `FIELDS`.
        since_ms: the least timestamp; None for any.
        until_ms: the timestamp that the record is older than; None for any.
    """

    pattern: bytes | re.Pattern[bytes]
    fields: tuple[str, ...] = FIELDS
    since_ms: int | None = None
    until_ms: int | None = None

    def accepts(self, record: Record | Message) -> bool:
        """Return whether a record is wanted."""
        fields = (each for each in self._searched(record) if each is not None)
        return is_within(record.timestamp_ms, self.since_ms, self.until_ms) and any(map(self._is_in, fields))

    def may_be_in(self, frame: Frame, at: Location, limit: int) -> bool:
        """Return False if a batch marks the end of a transaction, or its bytes show that it holds no wanted record.

        A text that is in a record is also in the bytes of its batch, once they are decompressed. An expression can
        depend on where a field begins and ends, which only decoding shows. The checksum is verified in any case.

        Args:
            frame: the batch.
            at: location of the batch.
            limit: bytes that decompression may produce at most.

        Raises:
            FormatError: the batch is damaged or refused.
        """
        header = frame.header
        verify_checksum(frame, at)
        if header.is_control:
            return False
        if header.size_in_bytes > MAX_SEARCHED_SIZE or not isinstance(self.pattern, bytes):
            return True
        if not header.codec_id:
            return self.pattern in bytes(frame.data)
        if isinstance(header, RecordBatchHeader):
            return self.pattern in records_section(frame, header, at, limit)[0]
        return True  # a wrapper: the messages inside are decoded

    def _is_in(self, field: bytes) -> bool:
        return self.pattern in field if isinstance(self.pattern, bytes) else bool(self.pattern.search(field))

    def _searched(self, record: Record | Message) -> Iterator[bytes | None]:
        if "key" in self.fields:
            yield record.key
        if "value" in self.fields:
            yield record.value
        if "header" in self.fields:
            for header in record.headers:
                yield header.key
                yield header.value


# -- the next intact entry after damage (SEG-LOG-004) ------------------------------------------------------------------
#
# An entry counts as intact if its checksum is right and its offsets are possible. Where a size field is in doubt, the
# next entry is searched for byte by byte. The value of a record may look like an entry.


SEARCH_BUDGET: Final = 16
"""Maximum bytes for checksums during a search, as a multiple of the file's size."""

MIN_BUDGET: Final = 1 << 26

PATTERN_SIZE: Final = ENTRY_PREFIX.size
"""Number of bytes that are compared to see whether an entry may begin at a position."""

SEARCHED_SIZE: Final = 1 << 16
"""Maximum number of bytes searched at once."""

ZEROS: Final = bytes(SEARCHED_SIZE)

SAME_UPPER_HALF: Final = 4
"""If the upper 4 bytes of possible offsets have no more values than this, only those values are searched for."""


def next_entry(source: ByteSource, start: int, allowed: OffsetRange) -> int:
    """Search byte by byte for the start of the next intact entry; return the size of the source if there is none.

    Args:
        source: the bytes of the `.log` file.
        start: position from which on to search.
        allowed: offsets that the segment can hold.
    """
    return next(EntrySearch(source, allowed, source.path).candidates(start), source.size)


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


def begins_entry(source: ByteSource, start: int, first_offset: int) -> bool:
    """Return whether the header of an entry, whole or not, seems to be behind a position.

    Args:
        source: the bytes of the `.log` file.
        start: position from which on to search.
        first_offset: entries with lower offsets do not count.
    """
    possible = EntrySearch(source, OffsetRange(first_offset, GREATEST_OFFSET), source.path).possible_entries(start)
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


class EntrySearch:
    """A search for intact entries in one log.

    Attributes:
        budget: bytes for checksums that the search may still read.
    """

    def __init__(self, source: ByteSource, allowed: OffsetRange, path: str, *, is_for_brokers: bool = False) -> None:
        """Prepare a search; nothing is read yet.

        Args:
            source: the bytes of the `.log` file.
            allowed: offsets that the segment can hold.
            path: file name for locations.
            is_for_brokers: whether end markers that brokers cannot read are left out.
        """
        self.source = source
        self.allowed = allowed
        self.path = path
        self.is_for_brokers = is_for_brokers
        self.budget = max(source.size * SEARCH_BUDGET, MIN_BUDGET)
        self.pattern = _pattern(allowed)

    def violation(self, frame: Frame) -> tuple[str, str]:
        """Return the requirement that an entry breaks, and how it breaks it; empty texts if it breaks none."""
        header, allowed = frame.header, self.allowed
        try:
            is_valid = checksum_is_valid(frame)
        except UnreadableError as error:
            return error.requirements[0], reason_of(error)
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
            return error.requirements[0], f"an end marker that brokers cannot read: {reason_of(error)}"
        is_lacking = lacks_end_marker(frame.header, marker)
        return ("SEG-CTL-003", "a producer's control batch without an end marker") if is_lacking else ("", "")

    def continues_at(self, position: int) -> bool:
        """Return whether an intact entry begins at a position, or the file ends there."""
        if position == self.source.size:
            return True
        try:
            found = frame_at(self.source, position, self.source.size, self.path)
        except FormatError:
            return False
        return isinstance(found, Frame) and not self.violation(found)[0]

    def candidates(self, start: int) -> Iterator[int]:
        """Yield the positions of intact entries, searching from a position on."""
        for position, _, size in self.possible_entries(start):
            if MIN_ENTRY_SIZE <= size <= self.source.size - position - ENTRY_PREFIX_SIZE:
                self.budget -= size
                if self.budget <= 0:
                    return
                if self.continues_at(position):
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


def reason_of(error: FormatError) -> str:
    """Return what an error says, without its place."""
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
