"""Recovery of partition directories: plans with their file changes, and their execution (chapter 71).

The plan of a broker since 2.0 includes its faults. Recovery works in rounds until no file change is left: it first
finishes interrupted replacements, then carries out the plan, then splits segments. Each round plans again from the
files on disk, as after a crash; a log that is still the same is not read again.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from seglog_format.engine import Engine, engine_for, kernels_of
from seglog_format.errors import FormatError, Location, UsageError, WriteError, write_errors
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import require_partition, size_of_segments
from seglog_format.log.scanning import storage_for
from seglog_format.log.transactions import Transactions
from seglog_format.model import Tail
from seglog_format.names import FileKind, printable
from seglog_format.recovery.broker_scan import BrokerScan, BrokerStopError, Outcome, entries_passed, trusted_end
from seglog_format.recovery.entry_walk import recoverable_frame_at, recoverable_frames
from seglog_format.recovery.index_settings import IndexSettings, infer_settings
from seglog_format.recovery.log_scans import BrokerTransactions, LogScans
from seglog_format.recovery.plan import (
    WALKS_TO_END,
    Circumstances,
    Losses,
    RecoveryPlan,
    circumstances_of,
    first_unflushed,
    losses_of,
    plan_scans,
    reason_to_scan,
)
from seglog_format.recovery.planned_files import (
    BrokerFiles,
    RecoveryWork,
    end_of_swap,
    leftover_steps,
    naming_steps,
    opened_segments,
    recovery_steps,
    unreadable_epochs,
)
from seglog_format.recovery.segment_scan import Cut, Remark, Split, broker_split_of, split_of, split_steps
from seglog_format.state.directory_lock import DirectoryLock
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.byte_source import open_bytes
from seglog_format.storage.file_reader import raised_refusals
from seglog_format.storage.files import LOCAL_FILES, apply_steps, require_no_links
from seglog_format.storage.log_storage import Plan, require_unchanged

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.segment_scan import SegmentScan
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.files import Files, FileStep


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


MAX_ROUNDS: Final = 12
"""Maximum number of rounds: one for each kind of work, and a last one without work. More mean that another process
writes to the directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryOptions:
    """Options of a recovery.

    Attributes:
        like_broker: do what brokers do, even where the default recovery keeps more.
        is_full_scan: scan every segment, also those that checkpoints call flushed.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        engine: the engine that reads the logs; the plan does not depend on it.

    Examples:
        >>> from seglog_format import RecoveryOptions, recover
        >>> recovery = recover("demo/broken/crash-flip-0", options=RecoveryOptions(is_full_scan=True))
        >>> recovery.plan.scanned
        (0, 128, 270)
    """

    like_broker: bool = False
    is_full_scan: bool = False
    interval_bytes: int | None = None
    generation: BrokerGeneration | None = None
    engine: Engine = Engine.AUTO


DEFAULT_OPTIONS: Final = RecoveryOptions()


@dataclass(frozen=True, slots=True)
class PreparedRecovery(Plan["PreparedRecovery"]):
    """The planned recovery of a partition.

    Attributes:
        path: of the directory.
        circumstances: facts from the log directory.
        plan: the changes of the log.
        settings: how indexes are built, and why.
        phases: file changes, in order; a phase is planned again once the earlier phases are carried out.
        splits: segments that are split.
        failure: the reason for changing nothing: an imitated broker would not start, or a log has the name of another
            segment.
        differences: where the plan differs from what a broker does.
        is_like_broker: whether a broker is imitated.
        scans: of the logs, which `apply` does not repeat for a log that is still the same.
    """

    path: Path
    circumstances: Circumstances
    plan: RecoveryPlan
    settings: IndexSettings
    phases: tuple[tuple[FileStep, ...], ...]
    splits: tuple[Split, ...] = ()
    failure: Remark | None = None
    differences: tuple[Remark, ...] = field(default=())
    is_like_broker: bool = False
    scans: LogScans | None = field(default=None, compare=False, repr=False)

    @property
    def steps(self) -> tuple[FileStep, ...]:
        """The file changes of all phases, as far as they can be planned now."""
        return tuple(chain.from_iterable(self.phases))

    @property
    def next_phase(self) -> tuple[FileStep, ...]:
        """The next file changes; empty if there is nothing to do."""
        return next((phase for phase in self.phases if phase), ())

    @property
    def is_brokers_last_phase(self) -> bool:
        """Return whether an imitated broker only cleans up after the next phase: it recovers once, after its splits."""
        return self.is_like_broker and not self.splits and self.next_phase is self.phases[-1]

    def losses(self) -> Losses:
        """Count the offsets that cannot be read after the recovery (SEG-RCV-031). Every log is walked.

        Raises:
            UnreadableError: the disk refuses a file.
        """
        return Losses() if self.failure else losses_of(self.path, self.plan)


def prepare_recovery(
    path: str | os.PathLike[str], directory: LogDirectory | None = None, *, options: RecoveryOptions = DEFAULT_OPTIONS
) -> PreparedRecovery:
    """Plan the recovery of a partition directory, including its file changes. Changes nothing.

    Args:
        path: of the partition directory.
        directory: the log directory; the directory above by default.
        options: how to recover.

    Raises:
        UsageError: the path is not a partition directory (see `path_kind`), and no log directory is given.
        UnreadableError: the disk refuses the directory, a file of it, or a range of a file (SEG-PDR-022).
        FormatError: something that is no regular file has the name of a log, or what the given log directory names as a
            partition is none (SEG-PDR-030), or a link would have to be changed (SEG-PDR-031).
    """
    try:
        require_partition(path)
    except UsageError as error:
        if directory is None:
            raise
        found = str(error).removeprefix(f"{printable(str(path))}: ").partition(";")[0]
        raise FormatError(Location(str(path)), "SEG-PDR-030", expected="a partition directory", found=found) from error
    directory = directory or log_directory_above(path)
    return _prepare(path, directory, options)


def _prepare(
    path: str | os.PathLike[str],
    directory: LogDirectory,
    options: RecoveryOptions,
    *,
    settings: IndexSettings | None = None,
    keeps_epochs: bool = False,
    earlier: LogScans | None = None,
) -> PreparedRecovery:
    """Plan one round of a recovery.

    Args:
        path: of the partition directory.
        directory: the log directory.
        options: how to recover.
        settings: of the indexes, from an earlier round, in which the plan was already compared with a broker's; None in
            the first round.
        keeps_epochs: leave the leader epochs unchanged: a broker writes them in its one recovery, and not again.
        earlier: the scans of the plan before.

    Raises:
        UnreadableError: the disk refuses a file of the partition, or a range of one that the plan depends on: nothing
            may be cut off or removed because of that (SEG-PDR-022).
    """
    with raised_refusals():
        listing = list_partition(path, end_of_swap=end_of_swap if options.like_broker else None)
        require_readable(listing)
    broker = BrokerFiles(listing, is_first_round=settings is None) if options.like_broker else None
    listing = broker.listed() if broker else listing
    circumstances = circumstances_of(listing, directory)
    is_compared = settings is None and broker is None
    choice = engine_for(options.engine, size_of_segments(listing.segments))
    storage = storage_for(choice.engine)
    with raised_refusals(), opened_segments(listing, broker=broker, storage=storage) as segments:
        settings = settings or _settings(segments, options)
        start, snapshots = circumstances.log_start_offset, listing.snapshots
        known = BrokerTransactions(segments, snapshots, start) if broker else None
        scans = LogScans(
            segments, snapshots, settings, kernels_of(choice), imitated=known, is_compared=is_compared, earlier=earlier
        )
        if broker is not None:
            broker_plan = plan_like_broker(segments, circumstances, scans.broker_scan, known)
            work = RecoveryWork(
                *(listing, segments, circumstances, broker_plan.plan, settings, scans),
                like_broker=True,
                keeps_epochs=keeps_epochs,
            )
            found = _like_broker(work, broker_plan, broker)
        else:
            plan = plan_by_default(segments, circumstances, scans.scan, is_full_scan=options.is_full_scan)
            plan, stop = cut_at_stops(segments, plan, BrokerTransactions(segments, snapshots, start))
            different: tuple[Remark, ...] = ()
            if is_compared:
                unreadable = unreadable_epochs(listing.path) or stop
                broker_plan = plan_like_broker(segments, circumstances, scans.broker_scan)
                different = (unreadable,) if unreadable else differences(segments, plan, broker_plan)
            found = _by_default(RecoveryWork(listing, segments, circumstances, plan, settings, scans))
            found = replace(found, differences=different)
            if is_compared and broker_plan.failure is None and broker_plan.split is None:
                found = replace(found, plan=_as_reached(found.plan, broker_plan.plan))
    require_no_links(found.steps)
    return replace(found, scans=scans)


def _as_reached(plan: RecoveryPlan, broker: RecoveryPlan) -> RecoveryPlan:
    """Return a plan with the end that a broker takes from a wrong index, if neither scans a log."""
    if plan.scanned or broker.scanned:
        return plan
    return replace(plan, log_end_offset=min(plan.log_end_offset, broker.log_end_offset))


def require_readable(listing: PartitionListing) -> None:
    """Check that every file of a partition can be opened.

    Raises:
        UnreadableError: a file cannot be opened (SEG-PDR-022).
    """
    for file in listing.files:
        open_bytes(file.path).close()


def _settings(segments: Sequence[LogSegment], options: RecoveryOptions) -> IndexSettings:
    offset = None if options.generation is None else options.generation.indexed_offset
    return infer_settings(segments, interval_bytes=options.interval_bytes, indexed_offset=offset)


def _like_broker(work: RecoveryWork, plan: BrokerPlan, files: BrokerFiles) -> PreparedRecovery:
    names = ((*leftover_steps(work.listing, like=files), *files.naming_steps(work.settings)),)
    splits = () if plan.split is None else (plan.split,)
    phase = recovery_steps(work) if plan.split is None else split_steps(plan.split, work.directory)
    failure = files.failure() or plan.failure
    return replace(_prepared(work, () if failure else (*names, phase), splits, failure), is_like_broker=True)


def _by_default(work: RecoveryWork) -> PreparedRecovery:
    if failure := misnamed_log(work.plan):
        return _prepared(work, (), failure=failure)
    splits = tuple(_splits(work))
    names = leftover_steps(work.listing), naming_steps(work.listing)
    split = (split_steps(split, work.directory) for split in splits)
    return _prepared(work, (*names, recovery_steps(work), *split), splits)


def _prepared(
    work: RecoveryWork,
    phases: tuple[tuple[FileStep, ...], ...],
    splits: tuple[Split, ...] = (),
    failure: Remark | None = None,
) -> PreparedRecovery:
    return PreparedRecovery(work.directory, work.circumstances, work.plan, work.settings, phases, splits, failure)


def _splits(work: RecoveryWork) -> Iterator[Split]:
    """Yield splits of scanned segments. A segment is not split if a part would begin in the next segment's offsets."""
    cut = {each.base_offset for each in work.plan.cuts}
    for segment in work.kept:
        is_whole = segment.base_offset in work.plan.scanned and segment.base_offset not in cut
        if is_whole and work.scans.has_overflow(segment):
            split = split_of(segment)
            if split is not None and split.parts[-1].base_offset <= segment.allowed.last:
                yield split


def recover_partition(
    path: str | os.PathLike[str],
    directory: LogDirectory | None = None,
    *,
    options: RecoveryOptions = DEFAULT_OPTIONS,
    files: Files = LOCAL_FILES,
    holds_lock: bool = False,
    planned: PreparedRecovery | None = None,
) -> PreparedRecovery:
    """Recover a partition directory (SEG-RCV-029).

    Args:
        path: of the partition directory.
        directory: the log directory; the directory above by default.
        options: how to recover.
        files: the file layer that changes go through.
        holds_lock: whether the caller already holds the lock of the log directory.
        planned: the plan to carry out; nothing is changed if the current plan differs.

    Returns:
        The first plan, with all file changes that were made. If it has a `failure`, no changes were made.

    Raises:
        UsageError: the path is not a partition directory (see `path_kind`), the current plan differs from `planned`, or
            another process holds the lock of the log directory.
        UnreadableError: as for `prepare_recovery`; nothing is changed from then on.
        WriteError: a file change failed; changes so far are safe, and a second recovery continues from there.
    """
    require_partition(path)
    directory = directory or log_directory_above(path)
    with nullcontext() if holds_lock else writing(directory):
        first = prepared = _prepare(path, directory, options, earlier=None if planned is None else planned.scans)
        require_unchanged(planned, first, path)
        done: list[tuple[FileStep, ...]] = []
        with (
            write_errors("recovery"),
            opened_for_change(directory.path, first.path, files, is_changed=bool(first.next_phase)),
        ):
            while prepared.next_phase:
                if len(done) == MAX_ROUNDS:
                    msg = f"{path}: still not recovered after {MAX_ROUNDS} rounds; does another process write here?"
                    raise WriteError(msg)
                apply_steps(prepared.next_phase, files)
                done.append(prepared.next_phase)
                keeps = prepared.is_brokers_last_phase
                prepared = _prepare(
                    path, directory, options, settings=first.settings, keeps_epochs=keeps, earlier=prepared.scans
                )
    return replace(first, phases=tuple(done), failure=first.failure or prepared.failure)


@contextmanager
def writing(directory: LogDirectory) -> Iterator[None]:
    """Hold the lock of a log directory, if there is one.

    Raises:
        UsageError: another process holds it.
        WriteError: the lock file cannot be opened.
    """
    if directory.is_locked:
        msg = f"{directory.path} is in use: a broker or another writer holds its lock file"
        raise UsageError(msg)
    if FileKind.LOCK not in directory.listing.root_files:
        yield
        return
    with write_errors("locking"):
        lock = DirectoryLock(directory.path)
    try:
        yield
    finally:
        lock.close()
