"""The recovery plan of a broker since 2.0, including its faults (chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.errors import Location
from seglog_format.log.resolution import SWAP
from seglog_format.recovery.broker_end import BrokerStopError, trusted_end
from seglog_format.recovery.broker_scan import BrokerScan, Outcome
from seglog_format.recovery.plan import Circumstances, RecoveryPlan, first_unflushed, reason_to_scan
from seglog_format.recovery.segment_scan import Cut, Remark
from seglog_format.recovery.segment_split import Split, broker_split_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.broker_transactions import BrokerTransactions


TAIL: Final = "bytes that are no whole entry"


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """What a broker decides when it starts.

    Attributes:
        plan: the plan, up to a failure or to a segment that must be split first.
        failure: why the broker does not start; None if it starts.
        split: the segment that the broker splits before it begins again; None if it splits none.
    """

    plan: RecoveryPlan
    failure: Remark | None = None
    split: Split | None = None


def plan_like_broker(
    segments: Sequence[LogSegment],
    circumstances: Circumstances,
    scan: Callable[[LogSegment, int], BrokerScan],
    transactions: BrokerTransactions | None = None,
) -> BrokerPlan:
    """Plan what a broker does to the segments of a partition when it starts.

    Args:
        segments: in order.
        circumstances: facts from the log directory.
        scan: scans the first bytes of a segment as a broker does.
        transactions: those that a broker knows; without them the plan does not show whether the broker can read the
            state of the producers.
    """
    return _Planner(segments, circumstances, scan, transactions).run()


class _Planner:
    def __init__(
        self,
        segments: Sequence[LogSegment],
        circumstances: Circumstances,
        scan: Callable[[LogSegment, int], BrokerScan],
        transactions: BrokerTransactions | None,
    ) -> None:
        self.scan_of = scan
        self.transactions = transactions
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
            self._scan_unindexed()
            if not self.circumstances.has_clean_shutdown:
                self._scan_unflushed()
            end = self._log_end()
            self._read_producers(end)
        except BrokerStopError as stop:
            failure, split = stop.failure, stop.split
        return BrokerPlan(self._plan(end, is_complete=not failure and not split), failure, split)

    def _measure_replacements(self) -> None:
        """Walk each finished replacement, as a broker does to see which segments it covers."""
        for segment in self.segments:
            if segment.path.endswith(SWAP):
                trusted_end(segment)

    def _scan_unindexed(self) -> None:
        """Scan segments without an index before all others; none of these scans drops later segments."""
        for number, segment in enumerate(self.segments):
            if reason_to_scan(segment):
                self._scan(number)
                scan = self.scans[segment.base_offset]
                if scan.outcome is Outcome.INVALID_OFFSET:
                    text = "brokers do not start: they fail on an offset out of order when they rebuild a missing index"
                    raise BrokerStopError(Remark(Location(segment.path, scan.valid_size), scan.requirements, text))

    def _scan_unflushed(self) -> None:
        circumstances = self.circumstances
        first = first_unflushed(self.segments, circumstances.has_clean_shutdown, circumstances.recovery_point)
        for number in range(first, len(self.segments)):
            if self._scan(number):
                self.kept_count = number + 1
                return

    def _scan(self, number: int) -> int:
        """Scan a segment, or what an earlier scan kept of it; return the number of bytes to remove."""
        segment = self.segments[number]
        base, known = segment.base_offset, self.cuts.get(segment.base_offset)
        size = segment.source.size if known is None else known.position
        scan = self.scan_of(segment, size)
        if scan.outcome is Outcome.OVERFLOW:
            found = broker_split_of(segment)
            raise BrokerStopError(found) if isinstance(found, Remark) else BrokerStopError(split=found)
        if scan.outcome is Outcome.FAILURE:
            text = f"brokers do not start: {scan.reason}"
            raise BrokerStopError(Remark(Location(segment.path, scan.valid_size), scan.requirements, text))
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
            return trusted_end(last)
        return last.base_offset if scan.outcome is Outcome.INVALID_OFFSET else scan.next_offset

    def _read_producers(self, end: int) -> None:
        """Read the producers up to the log end offset, unless a scan of the last segment has done so."""
        kept = self.segments[: self.kept_count]
        if self.transactions and kept and kept[-1].base_offset not in self.scans:
            self.transactions.read_to_end(end)

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
