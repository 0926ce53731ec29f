"""The recovery plan of a broker since 2.0, including its faults (chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, Location
from seglog_format.log.transactions import Transactions
from seglog_format.model import Tail
from seglog_format.recovery.broker_scan import BrokerScan, BrokerStopError, Outcome, entries_passed, trusted_end
from seglog_format.recovery.entry_walk import recoverable_frame_at, recoverable_frames
from seglog_format.recovery.plan import (
    WALKS_TO_END,
    Circumstances,
    RecoveryPlan,
    first_unflushed,
    plan_scans,
    reason_to_scan,
)
from seglog_format.recovery.segment_scan import Cut, Remark, Split, broker_split_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.log_scans import BrokerTransactions
    from seglog_format.recovery.segment_scan import SegmentScan


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
            end = self.segments[-1].next_offset  # nothing is lost yet
        return BrokerPlan(self._plan(end, is_complete=not failure and not split), failure, split)

    def _measure_replacements(self) -> None:
        """Walk each finished replacement, as a broker does to see which segments it covers."""
        for segment in self.segments:
            if segment.paths.is_replacement:
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


# -- the default recovery plan, and how many bytes more or less it keeps than a broker's plan (chapter 71) -------------


def plan_by_default(
    segments: Sequence[LogSegment],
    circumstances: Circumstances,
    scan: Callable[[LogSegment], SegmentScan],
    *,
    is_full_scan: bool = False,
) -> RecoveryPlan:
    """Plan a recovery that removes bytes after the last whole entry even after a clean shutdown (SEG-RCV-024).

    Args:
        segments: in order.
        circumstances: facts from the log directory.
        scan: returns which bytes of a segment stay.
        is_full_scan: scan every segment, also those that checkpoints call flushed.
    """
    plan = plan_scans(segments, circumstances, scan, is_full_scan=is_full_scan)
    if not segments or plan.dropped or segments[-1].base_offset in plan.scanned:
        return plan
    cut = _tail_cut(segments[-1])
    if cut is None:
        return plan
    remarks = tuple(remark for remark in plan.remarks if remark.text != WALKS_TO_END)
    return replace(plan, cuts=(*plan.cuts, cut), remarks=remarks)


def _tail_cut(segment: LogSegment) -> Cut | None:
    """Return a cut after the last whole entry; checksums are not checked, as brokers do not check them here."""
    end, next_offset = 0, segment.base_offset
    for frame in recoverable_frames(segment.source, path=segment.path):
        end, next_offset = frame.end, frame.header.next_offset
    size = segment.source.size - end
    if not size:
        return None
    try:
        tail = recoverable_frame_at(segment.source, end, segment.path)
    except FormatError as error:
        requirements, reason = error.requirements, f"{error.location.field}: {error.found}"
    else:
        assert isinstance(tail, Tail)
        requirements, reason = (tail.requirement,), f"{tail.kind.value}: {tail.size} bytes"
    rules = ("SEG-RCV-024", *requirements)
    return Cut(segment.base_offset, segment.path, end, size, next_offset, rules, reason)


def cut_at_stops(
    segments: Sequence[LogSegment], plan: RecoveryPlan, transactions: BrokerTransactions
) -> tuple[RecoveryPlan, Remark | None]:
    """Return a plan that also cuts where a broker, which does not start then, stops in segments that it does not scan.

    A broker walks over them for the state of producers. The segments after a cut stay: they were safely written
    (SEG-RCV-024).

    Args:
        segments: in order.
        plan: the plan so far.
        transactions: those that a broker knows; they are updated.

    Returns:
        The plan, and where a broker stops; None if it does not.
    """
    stop = _producers_stop(segments, plan, transactions)
    if stop is None:
        return plan, None
    left_alone = {*plan.scanned, *plan.dropped, *(cut.base_offset for cut in plan.cuts)}
    trusted = [each for each in segments if each.base_offset not in left_alone]
    first = next((number for number, each in enumerate(trusted) if each.path == stop.location.path), len(trusted))
    cuts = (cut for each in trusted[first:] if (cut := _cut_at_stop(each)))
    ordered = sorted((*plan.cuts, *cuts), key=lambda cut: cut.base_offset)
    return replace(plan, cuts=tuple(ordered)), stop


def _producers_stop(
    segments: Sequence[LogSegment], plan: RecoveryPlan, transactions: BrokerTransactions
) -> Remark | None:
    """Return where a broker stops while it reads the producers of segments that it does not scan; None if nowhere."""
    kept = [segment for segment in segments if segment.base_offset not in plan.dropped]
    try:
        for segment in kept:
            if segment.base_offset in plan.scanned:
                transactions.at(segment.base_offset)
                transactions.carry_on(segment.allowed.last + 1, Transactions())  # what the scan keeps can be read
        if kept and kept[-1].base_offset not in plan.scanned:
            transactions.read_to_end(plan.log_end_offset)
    except BrokerStopError as stop:
        return stop.failure
    return None


def _cut_at_stop(segment: LogSegment) -> Cut | None:
    """Return a cut where a broker's walk over a segment stops with an error; None if it comes to the end."""
    next_offset = segment.base_offset
    try:
        for passed in entries_passed(segment, 0, ""):
            next_offset = passed.next_offset
    except BrokerStopError as stop:
        failure = stop.failure
    else:
        return None
    assert failure is not None
    end, size = failure.location.position or 0, segment.source.size - (failure.location.position or 0)
    rules = ("SEG-RCV-024", *failure.requirements)
    return Cut(
        segment.base_offset, segment.path, end, size, next_offset, rules, f"{size} bytes in which no entry begins"
    )


def misnamed_log(plan: RecoveryPlan) -> Remark | None:
    """Return why nothing may be done if a plan would empty a log of which only the name is wrong (SEG-RCV-032).

    The first entry of such a log is intact, but starts below the offset in the file name: brokers do not start.
    """
    for cut in plan.cuts:
        if not cut.position and "SEG-LOG-008" in cut.requirements:
            text = f"the first entry does not belong to this file name ({cut.reason}): `salvage` reads such a log"
            return Remark(Location(cut.path, 0, "offset"), ("SEG-RCV-032", "SEG-LOG-008"), text)
    return None


def differences(segments: Sequence[LogSegment], plan: RecoveryPlan, broker: BrokerPlan) -> tuple[Remark, ...]:
    """Return where a plan differs from what a broker does, segment by segment."""
    if broker.failure is not None:
        return (broker.failure,)
    if broker.split is not None:
        text = f"brokers first split this segment into {len(broker.split.parts)} parts, and then begin again"
        return (Remark(Location(str(broker.split.files.log)), ("SEG-RCV-022",), text),)
    return tuple(_differences(segments, plan, broker.plan))


def _differences(segments: Sequence[LogSegment], plan: RecoveryPlan, broker: RecoveryPlan) -> Iterator[Remark]:
    for segment in segments:
        ours, theirs = kept_size(segment, plan), kept_size(segment, broker)
        if ours == theirs:
            continue
        found = "more" if ours > theirs else "fewer"
        decisive = broker if ours > theirs else plan
        size = segment.source.size
        text = f"{abs(ours - theirs)} bytes {found} are kept than by brokers, which keep {theirs} of {size}"
        yield Remark(Location(segment.path, min(ours, theirs)), _rules(segment.base_offset, decisive), text)


def kept_size(segment: LogSegment, plan: RecoveryPlan) -> int:
    """Return the number of bytes of a segment that a plan keeps."""
    if segment.base_offset in plan.dropped:
        return 0
    cut = next((cut for cut in plan.cuts if cut.base_offset == segment.base_offset), None)
    return segment.source.size if cut is None else cut.position


def _rules(base_offset: int, plan: RecoveryPlan) -> tuple[str, ...]:
    """Return ids of the rules by which a plan keeps less of a segment."""
    if base_offset in plan.dropped:
        return ("SEG-RCV-007",) if plan.restarts else ("SEG-RCV-004",)
    return next((cut.requirements for cut in plan.cuts if cut.base_offset == base_offset), ("SEG-RCV-003",))
