"""The recovery plan of a broker since 2.0, including its faults (chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, Location
from seglog_format.log.resolution import SWAP
from seglog_format.model import Frame
from seglog_format.recovery.broker_scan import BrokerScan, Outcome
from seglog_format.recovery.plan import Circumstances, RecoveryPlan, first_unflushed, reason_to_scan
from seglog_format.recovery.segment_scan import Cut, Remark
from seglog_format.recovery.segment_split import Split, broker_split_of
from seglog_format.schema.fixed_fields import ENTRY_PREFIX, RECORD_BATCH_MAGIC, batch_field_span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seglog_format.log.segment import LogSegment


TAIL: Final = "bytes that are no whole entry"
OFFSET_AND_SIZE: Final = 12
MIN_SIZE: Final = 14
"""Smaller sizes end a broker's walk with an error, whatever the magic."""
DELTA_POSITION, DELTA_SIZE = batch_field_span("last_offset_delta")


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """Decisions of a broker.

    Attributes:
        plan: the plan; up to a failure, or to a segment that must be split first.
        failure: why the broker does not start; None if it does.
        split: the segment that it splits before it starts over; None if it splits none.
    """

    plan: RecoveryPlan
    failure: Remark | None = None
    split: Split | None = None


class _StopError(Exception):
    """The broker stops."""

    def __init__(self, failure: Remark | None = None, split: Split | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.split = split


def plan_like_broker(
    segments: Sequence[LogSegment],
    circumstances: Circumstances,
    scan: Callable[[LogSegment, int], BrokerScan],
) -> BrokerPlan:
    """Plan what a broker does to the segments of a partition when it starts.

    Args:
        segments: in order.
        circumstances: facts from the log directory.
        scan: scans the first bytes of a segment as a broker does.
    """
    return _Planner(segments, circumstances, scan).run()


class _Planner:
    def __init__(
        self,
        segments: Sequence[LogSegment],
        circumstances: Circumstances,
        scan: Callable[[LogSegment, int], BrokerScan],
    ) -> None:
        self.scan_of = scan
        self.segments = segments
        self.circumstances = circumstances
        self.scans: dict[int, BrokerScan] = {}
        self.cuts: dict[int, Cut] = {}
        self.kept_count = len(segments)

    def run(self) -> BrokerPlan:
        """Return the plan, up to where the broker stops."""
        failure = split = None
        end = self.circumstances.log_start_offset
        try:
            self._measure_replacements()
            self._load()
            if not self.circumstances.has_clean_shutdown:
                self._recover()
            end = self._log_end()
        except _StopError as stop:
            failure, split = stop.failure, stop.split
        return BrokerPlan(self._plan(end, is_complete=not failure and not split), failure, split)

    def _measure_replacements(self) -> None:
        """Walk each finished replacement, as a broker does to see which segments it covers."""
        for segment in self.segments:
            if segment.path.endswith(SWAP):
                _trusted_end(segment)

    def _load(self) -> None:
        """Scan segments without an index before all others; the segments after them stay."""
        for number, segment in enumerate(self.segments):
            if reason_to_scan(segment):
                self._scan(number)
                scan = self.scans[segment.base_offset]
                if scan.outcome is Outcome.INVALID_OFFSET:
                    text = "brokers do not start: at this moment they expect no offset out of order"
                    raise _StopError(Remark(Location(segment.path, scan.valid_size), scan.requirements, text))

    def _recover(self) -> None:
        circumstances = self.circumstances
        first = first_unflushed(self.segments, circumstances.has_clean_shutdown, circumstances.recovery_point)
        for number in range(first, len(self.segments)):
            if self._scan(number):
                self.kept_count = number + 1
                return

    def _scan(self, number: int) -> int:
        """Scan a segment, a second time if necessary; return how many bytes are removed."""
        segment = self.segments[number]
        base, known = segment.base_offset, self.cuts.get(segment.base_offset)
        size = segment.source.size if known is None else known.position
        scan = self.scan_of(segment, size)
        if scan.outcome is Outcome.OVERFLOW:
            found = broker_split_of(segment)
            raise _StopError(found) if isinstance(found, Remark) else _StopError(split=found)
        if scan.outcome is Outcome.FAILURE:
            text = f"brokers do not start: {scan.reason}"
            raise _StopError(Remark(Location(segment.path, scan.valid_size), scan.requirements, text))
        self.scans[base] = scan
        end = 0 if scan.outcome is Outcome.INVALID_OFFSET else scan.valid_size
        if end < size:
            self.cuts[base] = _cut(segment, scan, end)
        return size - end

    def _log_end(self) -> int:
        if not self.kept_count:
            return self.circumstances.log_start_offset
        last = self.segments[self.kept_count - 1]
        scan = self.scans.get(last.base_offset)
        if scan is None:
            return _trusted_end(last)
        return last.base_offset if scan.outcome is Outcome.INVALID_OFFSET else scan.next_offset

    def _plan(self, end: int, *, is_complete: bool) -> RecoveryPlan:
        start = self.circumstances.log_start_offset
        restarts = is_complete and end < start
        gone = self.segments if restarts else self.segments[self.kept_count :]
        return RecoveryPlan(
            is_full_scan=False,
            recovery_point=self.circumstances.recovery_point,
            scanned=tuple(sorted(self.scans)),
            cuts=tuple(self.cuts[base] for base in sorted(self.cuts)),
            dropped=tuple(segment.base_offset for segment in gone),
            log_end_offset=max(end, start),
            restarts=restarts,
        )


def _cut(segment: LogSegment, scan: BrokerScan, end: int) -> Cut:
    rule = "SEG-RCV-003" if scan.reason else "SEG-RCV-033"
    reason, next_offset = scan.reason, scan.next_offset
    if scan.outcome is Outcome.INVALID_OFFSET:
        rule, next_offset = "SEG-RCV-023", segment.base_offset
    size = segment.source.size - end
    return Cut(segment.base_offset, segment.path, end, size, next_offset, (rule, *scan.requirements), reason or TAIL)


def _trusted_end(segment: LogSegment) -> int:
    """Return the first offset after a segment that a broker does not scan but walks from the last index entry on.

    Raises:
        _StopError: there is damage.
    """
    index = segment.offset_index
    entries = index.entries if index is not None else ()
    start = entries[-1].position if entries else 0
    try:
        starts_there = isinstance(segment.frame_at(start), Frame)
    except FormatError:
        starts_there = False
    return _walked_end(segment, start if starts_there else 0)


def _walked_end(segment: LogSegment, position: int) -> int:
    """Return the first offset after the last entry, by the few fields that a broker checks.

    Raises:
        _StopError: a size is invalid.
    """
    source, end = segment.source, segment.base_offset
    while position < source.size - ENTRY_PREFIX.size:
        first, data = source.window(position, DELTA_POSITION + DELTA_SIZE)
        offset, size, _, magic = ENTRY_PREFIX.unpack_from(data, position - first)
        if size < MIN_SIZE:
            text = "brokers do not start: they walk to here for the log end offset"
            where = Location(segment.path, position, "size", 4)
            raise _StopError(Remark(where, ("SEG-LOG-003",), text))
        following = position + OFFSET_AND_SIZE + size
        if following > source.size:
            break
        delta = data[position - first + DELTA_POSITION :][:DELTA_SIZE]
        is_batch = magic >= RECORD_BATCH_MAGIC
        end = offset + (int.from_bytes(delta, "big", signed=True) if is_batch else 0) + 1
        position = following
    return end
