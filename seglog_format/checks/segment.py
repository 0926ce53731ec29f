"""Checks of chapter 20: order and range of entries, and the bytes after the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.errors import Location
from seglog_format.model import INT32_MAX, Tail, TailKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.subjects import Entry


@dataclass(frozen=True, slots=True)
class LogTail:
    """The bytes after the last whole entry of a log file."""

    path: str
    tail: Tail

    def problems(self, kind: TailKind, expected: str) -> Iterator[Problem]:
        """Yield a problem if the tail is of that kind."""
        if self.tail.kind is kind:
            at = Location(self.path, self.tail.position, size=self.tail.size)
            yield Problem(at, expected, f"{self.tail.size} bytes: {kind.value}")


@dataclass(frozen=True, slots=True)
class LogSize:
    """The size of a log file."""

    path: str
    size: int


@checks("SEG-LOG-010")
def positions_fit(log: LogSize) -> Iterator[Problem]:
    """Report a log larger than brokers open."""
    if log.size > INT32_MAX:
        yield Problem(Location(log.path, INT32_MAX), f"at most {INT32_MAX} bytes", log.size)


@checks("SEG-LOG-002")
def no_trailing_bytes(log: LogTail) -> Iterator[Problem]:
    """Report up to 17 trailing bytes, too few for an entry."""
    yield from log.problems(TailKind.TRAILING, "the end of the log")


@checks("SEG-LOG-004")
def no_partial_entry(log: LogTail) -> Iterator[Problem]:
    """Report an entry truncated by the end of the file."""
    yield from log.problems(TailKind.PARTIAL, "a whole entry")


@checks("SEG-LOG-005")
def zero_tail(log: LogTail) -> Iterator[Problem]:
    """Report trailing zeros: preallocated space, or bytes that a file system left after a crash."""
    yield from log.problems(TailKind.ZEROS, "the end of the log")


@checks("SEG-LOG-006")
def last_offsets_increase(entry: Entry) -> Iterator[Problem]:
    """Report a last offset not above that of the entry before."""
    previous, last = entry.previous_last_offset, entry.batch.last_offset
    if previous is not None and last <= previous:
        yield Problem(entry.at.at("offset", 0, 8), f"a last offset above {previous}", last)


@checks("SEG-LOG-007")
def base_after_previous_last(entry: Entry) -> Iterator[Problem]:
    """Report entries that overlap although their last offsets are in order."""
    previous, base = entry.previous_last_offset, entry.batch.base_offset
    if previous is not None and base <= previous < entry.batch.last_offset:
        yield Problem(entry.at.at("offset", 0, 8), f"a base offset above {previous}", base)


@checks("SEG-LOG-008")
def not_below_segment(entry: Entry) -> Iterator[Problem]:
    """Report an entry below the base offset in the file name."""
    if entry.batch.base_offset < entry.segment_base_offset:
        base = entry.batch.base_offset
        yield Problem(entry.at.at("offset", 0, 8), f"{entry.segment_base_offset} or more", base)


@checks("SEG-LOG-009")
def offset_span(entry: Entry) -> Iterator[Problem]:
    """Report an entry whose offset is too far above the base offset for the 31-bit relative offsets of indexes."""
    span = entry.batch.last_offset - entry.segment_base_offset
    if span > INT32_MAX:
        yield Problem(entry.at.at("offset", 0, 8), f"at most {INT32_MAX} above the segment's base offset", span)
