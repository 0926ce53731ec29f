"""Recovery of partition directories: a plan with its file changes, and their execution (chapter 71).

Recovery works in rounds until no file change is left: it first finishes interrupted replacements, then carries out the
plan, then splits segments. Each round plans again from the files on disk, as after a crash.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from seglog_format.engine.choice import Engine, engine_for
from seglog_format.engine.columnar import kernels_of
from seglog_format.errors import FormatError, Location, UsageError, WriteError, write_errors
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import require_partition, size_of_segments
from seglog_format.log.scanning import storage_for
from seglog_format.names import FileKind, printable
from seglog_format.recovery.broker_plan import (
    BrokerPlan,
    cut_at_stops,
    differences,
    misnamed_log,
    plan_by_default,
    plan_like_broker,
)
from seglog_format.recovery.index_settings import IndexSettings, infer_settings
from seglog_format.recovery.log_scans import BrokerTransactions, LogScans
from seglog_format.recovery.losses import Losses, losses_of
from seglog_format.recovery.opened_segments import opened_segments
from seglog_format.recovery.plan import Circumstances, RecoveryPlan, circumstances_of
from seglog_format.recovery.planned_files import (
    BrokerFiles,
    RecoveryWork,
    end_of_swap,
    leftover_steps,
    naming_steps,
    recovery_steps,
    unreadable_epochs,
)
from seglog_format.recovery.segment_scan import Split, split_of, split_steps
from seglog_format.state.directory_lock import DirectoryLock
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.file_bytes import open_bytes
from seglog_format.storage.file_reader import raised_refusals
from seglog_format.storage.files import LOCAL_FILES, apply_steps, require_no_links
from seglog_format.storage.planned import Plan, require_unchanged

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.segment_scan import Remark
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.files import Files, FileStep

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
    path: str | os.PathLike[str],
    directory: LogDirectory | None = None,
    *,
    options: RecoveryOptions = DEFAULT_OPTIONS,
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
) -> PreparedRecovery:
    """Plan one round of a recovery.

    Args:
        path: of the partition directory.
        directory: the log directory.
        options: how to recover.
        settings: of the indexes, from an earlier round, in which the plan was already compared with a broker's; None in
            the first round.
        keeps_epochs: leave the leader epochs unchanged: a broker writes them in its one recovery, and not again.

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
        start = circumstances.log_start_offset
        transactions = BrokerTransactions(segments, listing.snapshots, start) if broker else None
        scans = LogScans(
            segments,
            listing.snapshots,
            settings,
            kernels_of(choice),
            imitated=transactions,
            is_compared=is_compared,
        )
        if broker is not None:
            broker_plan = plan_like_broker(segments, circumstances, scans.broker_scan, transactions)
            work = RecoveryWork(
                *(listing, segments, circumstances, broker_plan.plan, settings, scans),
                like_broker=True,
                keeps_epochs=keeps_epochs,
            )
            found = _like_broker(work, broker_plan, broker)
        else:
            plan = plan_by_default(segments, circumstances, scans.scan, is_full_scan=options.is_full_scan)
            plan, stop = cut_at_stops(segments, plan, BrokerTransactions(segments, listing.snapshots, start))
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
    return found


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
        first = prepared = _prepare(path, directory, options)
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
                keeps_epochs = prepared.is_brokers_last_phase
                prepared = _prepare(path, directory, options, settings=first.settings, keeps_epochs=keeps_epochs)
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
