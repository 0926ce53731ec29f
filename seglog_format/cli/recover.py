"""``seglog recover``: the plan of recovery, and its execution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, PassingOver
from seglog_format.cli.options import (
    engine_option,
    file_argument,
    generation_option,
    index_interval_option,
    json_option,
)
from seglog_format.cli.output import (
    count_text,
    printable,
    progress,
    size_text,
    styled,
    write_json,
    write_line,
    write_lines,
    write_text,
)
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.checks import Finding
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.gaps import Gap
    from seglog_format.recovery.apply import PreparedRecovery, RecoveryOptions
    from seglog_format.recovery.index_rebuild import RebuiltSegment
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.plan import Losses, LostOffsets, RecoveryPlan
    from seglog_format.recovery.segment_scan import Cut, Remark, Split
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.files import FileStep

    Stated = tuple[PreparedRecovery, RecoveryPlan, Losses, list[Finding]]

    """A recovery, the plan of a full scan, what is lost or missing, and what is kept although it is wrong."""


EPILOG: Final = """\b
Examples:
  seglog recover /var/lib/kafka/data
  seglog recover --json my-topic-0 | jq .plan.cuts
  seglog recover --write my-topic-0
  seglog recover --like-broker my-topic-0"""


@click.command(epilog=EPILOG)
@file_argument
@click.option("--write", is_flag=True, help="Carry the plan out; without this nothing is changed.")
@click.option("--like-broker", is_flag=True, help="Recover exactly as a broker would, even where that loses more.")
@click.option("--full-scan", is_flag=True, help="Scan every segment; trust no checkpoint.")
@index_interval_option
@generation_option
@engine_option
@json_option
def command(path: Path, *, write: bool, as_json: bool, engine: str, **options: Any) -> int:  # noqa: ANN401 - click's values
    """Show what recovery does to the directory at PATH, and with --write do it.

    A broker scans from the checkpointed recovery point on; a full scan may find more, so the plan shows both side by
    side. A log file can be scanned on its own; it is never changed.

    Files of dropped segments get names that end in .deleted, and the next broker to start deletes them. The directory
    is not changed while a broker uses it. The plan reports where it keeps more or less than a broker would.

    The plan lists the offsets that will be lost, with the reason, and those that are missing already. Before --write,
    'seglog salvage' can copy the intact batches after the damage to another directory.

    A broker accepts a batch by its checksum. Every record is decoded as well: what is kept, although no reader can read
    it or it is out of order, is listed.

    The exit status is 1 if something is cut, dropped or lost, by the plan or by a full scan, is missing already, or is
    kept although it is wrong, or if something beside the logs keeps a broker from starting: that is reported, and not
    changed. It is the same with --write. A cut of an incomplete batch or of zeros at the end of a log counts, although
    commands that only read end with 0 there. A partition that cannot be read is not planned, and not changed.
    """
    status = DONE
    from seglog_format.cli.options import settled
    from seglog_format.cli.output import GIVEN, printable
    from seglog_format.cli.paths import log_directory_at
    from seglog_format.cli.verify import as_object as finding_object
    from seglog_format.cli.verify import status_of

    if write and str(path) in GIVEN:
        msg = f"{path}: only directories are recovered, not what is packed"
        raise UsageError(msg)
    chosen = replace(_options(**options), engine=settled(engine, [path]))
    passing = PassingOver("partitions")
    directory = log_directory_at(path)
    for recovery, full_scan, losses, faults in _recoveries(path, directory, chosen, passing, write=write):
        status = max(status, *map(status_of, faults), DONE)
        if recovery.plan.changes_log or full_scan.changes_log or recovery.failure or losses.is_loss or losses.missing:
            status = max(status, FINDINGS)
        if as_json:
            kept = [finding_object(finding) for finding in faults]
            write_json({**as_object(recovery, full_scan, losses, is_written=write), "kept": kept})
        else:
            write_lines(recovery_text(recovery, full_scan, title=_title(chosen), is_written=write))
            write_lines(losses_text(losses, is_written=write))
            for finding in faults:
                write_text(f"  kept, as brokers keep it: {printable(str(finding))}")
    start = DONE if directory is None else _start_status(directory, as_json=as_json)
    return max(status, start, passing.status())


def _kept_faults(
    path: Path, recovery: PreparedRecovery, plan: RecoveryPlan, options: RecoveryOptions
) -> Iterator[Finding]:
    """Yield what is wrong in the logs where a plan cuts nothing, and in indexes that a recovery does not write."""
    from seglog_format.checks.verify import faults_of_logs
    from seglog_format.names import FileKind, segment_file_name

    ends = dict.fromkeys((segment_file_name(base_offset, FileKind.LOG) for base_offset in plan.dropped), 0)
    ends |= {Path(cut.path).name: cut.position for cut in plan.cuts}
    ends |= dict.fromkeys((step.path.name for step in recovery.steps if step.path.suffix != FileKind.LOG.value), 0)
    for finding in faults_of_logs(path, options.engine):
        end = ends.get(name := Path(finding.location.path).name)
        if end is None or finding.location.position < end:
            yield finding
            if not name.endswith(FileKind.LOG.value):
                ends[name] = 0  # one for an index is enough


def _start_status(directory: LogDirectory, *, as_json: bool) -> int:
    """Report what keeps a broker from starting on a log directory, or from serving a partition; return the status."""
    from seglog_format.cli.output import printable
    from seglog_format.recovery.start_problems import start_problems

    problems = tuple(start_problems(directory.listing))
    for problem in problems:
        write_line(
            {"type": "start", "effect": problem.effect.value, "text": str(problem.error)}
            if as_json
            else printable(str(problem))
        )
    return FINDINGS if problems else DONE


def _options(
    *, like_broker: bool, full_scan: bool, index_interval_bytes: int | None, generation: BrokerGeneration | None
) -> RecoveryOptions:
    from seglog_format.recovery.apply import RecoveryOptions

    if like_broker and full_scan:
        msg = "brokers never scan in full: give either --like-broker or --full-scan"
        raise UsageError(msg)
    return RecoveryOptions(
        like_broker=like_broker,
        is_full_scan=full_scan,
        interval_bytes=index_interval_bytes,
        generation=generation,
    )


def _title(options: RecoveryOptions) -> str:
    if options.like_broker:
        return "like a broker"
    return "this recovery" if options.is_full_scan else "as a broker starts"


def _recoveries(
    path: Path, directory: LogDirectory | None, options: RecoveryOptions, passing: PassingOver, *, write: bool
) -> Iterator[Stated]:
    from seglog_format.cli.paths import kept_partitions
    from seglog_format.log.directory import log_directory_above
    from seglog_format.recovery.plan import Losses

    if directory is None:
        if not path.is_dir():
            recovery = _file_recovery(path, options, write=write)
            yield recovery, recovery.plan, Losses(), list(_kept_faults(path, recovery, recovery.plan, options))
            return
        parent = log_directory_above(path)
        yield _recovery(path, parent, options, write=write)
        return
    entries = kept_partitions(path, directory)
    with progress("Recovering" if write else "Scanning", len(entries)) as advance:
        for number, entry in enumerate(entries, 1):
            found = None
            with passing.errors_of(entry.path):
                found = _recovery(entry.path, directory, options, write=write)
            if found is not None:
                yield found
            advance(number)


def _recovery(path: Path, directory: LogDirectory, options: RecoveryOptions, *, write: bool) -> Stated:
    """Plan a recovery, and carry it out if asked to; what is said of it comes from the files before any change."""
    from seglog_format import recover
    from seglog_format.recovery.plan import plan_for_partition

    recovery = recover(path, options=options, directory=directory)
    losses = recovery.losses()
    full_scan = (
        recovery.plan if options.is_full_scan else plan_for_partition(path, directory, engine=options.engine).full_scan
    )
    faults = list(_kept_faults(path, recovery, full_scan, options))
    if write:
        recovery = recovery.apply()
    return recovery, recovery.plan if options.is_full_scan else full_scan, losses, faults


def _file_recovery(path: Path, options: RecoveryOptions, *, write: bool) -> PreparedRecovery:
    from seglog_format.cli.paths import segment_files_at
    from seglog_format.engine import engine_for, kernels_of
    from seglog_format.log.scanning import storage_for
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.index_settings import infer_settings
    from seglog_format.recovery.plan import Circumstances, plan_recovery

    if write or options.like_broker:
        msg = f"{path}: only directories are recovered, not a file on its own"
        raise UsageError(msg)
    choice = engine_for(options.engine, 0)
    with LogSegment(segment_files_at(path), storage=storage_for(choice.engine)) as segment:
        plan = plan_recovery([segment], is_full_scan=True, kernels=kernels_of(choice))
        settings = infer_settings([segment], interval_bytes=options.interval_bytes)
    return PreparedRecovery(path, Circumstances(), plan, settings, ())


def as_object(
    recovery: PreparedRecovery, full_scan: RecoveryPlan, losses: Losses, *, is_written: bool
) -> dict[str, Any]:
    """Return one partition for JSON."""
    return {
        "type": "recovery",
        "directory": recovery.path.name,
        "hasCleanShutdown": recovery.circumstances.has_clean_shutdown,
        "plan": _plan(recovery.plan),
        "fullScan": _plan(full_scan),
        "lost": [{"file": one.file, "reason": one.reason.value, **one.missing.as_object()} for one in losses.lost],
        "missing": [_gap(gap) for gap in losses.missing],
        "splits": [_split(split) for split in recovery.splits],
        "differences": [_remark(remark) for remark in recovery.differences],
        "failure": None if recovery.failure is None else _remark(recovery.failure),
        "index": index_object(recovery.settings),
        "isWritten": is_written and recovery.failure is None,
        "changes": [change_object(step) for step in recovery.steps if step.requirement],
    }


def change_object(step: FileStep) -> dict[str, Any]:
    """Return one file change for JSON."""
    return {"file": step.path.name, "change": step.text, "requirement": step.requirement}


def index_object(settings: IndexSettings) -> dict[str, Any]:
    """Return for JSON how indexes are built."""
    return {
        "intervalBytes": settings.interval_bytes,
        "intervalReason": settings.interval_reason,
        "indexedOffset": settings.indexed_offset.value,
        "offsetReason": settings.offset_reason,
    }


def _gap(gap: Gap) -> dict[str, Any]:
    return {"file": Path(gap.path).name, "kind": gap.kind.value, **gap.missing.as_object()}


def _plan(plan: RecoveryPlan) -> dict[str, Any]:
    return {
        "recoveryPoint": plan.recovery_point,
        "scanned": list(plan.scanned),
        "cuts": [_cut(cut) for cut in plan.cuts],
        "dropped": list(plan.dropped),
        "logEndOffset": plan.log_end_offset,
        "restarts": plan.restarts,
        "remarks": [_remark(remark) for remark in plan.remarks],
    }


def _cut(cut: Cut) -> dict[str, Any]:
    return {
        "baseOffset": cut.base_offset,
        "position": cut.position,
        "size": cut.size,
        "nextOffset": cut.next_offset,
        "requirements": list(cut.requirements),
        "reason": cut.reason,
    }


def _split(split: Split) -> dict[str, Any]:
    return {"file": split.files.log.name, "baseOffsets": [part.base_offset for part in split.parts]}


def _remark(remark: Remark) -> dict[str, Any]:
    return {
        "file": remark.location.path,
        "position": remark.location.position,
        "requirements": list(remark.requirements),
        "text": remark.text,
    }


# -- recovery plans as text, side by side ------------------------------------------------------------------------------


LABEL_WIDTH: Final = 16
MANY: Final = 4
"""Maximum number of segments that are named; more are counted."""


def recovery_text(
    recovery: PreparedRecovery, full_scan: RecoveryPlan, *, title: str, is_written: bool
) -> Iterator[str]:
    """Yield a heading, the two plans beside each other, what brokers do differently, and the file changes."""
    name = styled(printable(recovery.path.name), "bold")
    shutdown = "clean shutdown" if recovery.circumstances.has_clean_shutdown else "no clean shutdown"
    yield f"{name}: {shutdown}, recovery point {recovery.plan.recovery_point}"
    plans = [recovery.plan] if recovery.plan is full_scan else [recovery.plan, full_scan]
    titles = [title, "full scan"] if len(plans) > 1 else ["recovery" if is_written else "full scan"]
    columns = [list(_column(title, plan)) for title, plan in zip(titles, plans, strict=True)]
    width = max(len(value) for _, value in columns[0])
    for row in zip(*columns, strict=True):
        label = row[0][0]
        values = "  ".join(value.ljust(width) for _, value in row)
        if values.strip():
            yield f"  {label:{LABEL_WIDTH}}{values}".rstrip()
    yield from _remarks(plans, recovery.differences)
    if recovery.failure is not None:
        yield f"  {printable(_remark_text(recovery.failure))}"
        yield "  nothing is done"
    yield from _changes(recovery, is_written=is_written)


def _changes(recovery: PreparedRecovery, *, is_written: bool) -> Iterator[str]:
    steps = [step for step in recovery.steps if step.requirement]
    if not steps:
        return
    yield f"  {'changed' if is_written else 'to change, with --write'}:"
    for step in steps:
        yield f"    {printable(step.path.name)}: {printable(step.text)} [{step.requirement}]"
    yield from (f"  {line}" for line in index_text(recovery.settings))


def losses_text(losses: Losses, *, is_written: bool) -> Iterator[str]:
    """Yield which offsets cannot be read after a recovery, and which could not before."""
    yield from _lost_text(f"  {'lost' if is_written else 'to be lost, with --write'}:", losses.removed)
    yield from _lost_text("  to be lost when a broker starts, without --full-scan:", losses.unreached)
    yield from _lost_text("  hidden, before and after:", losses.hidden)
    if losses.missing:
        yield "  missing already:"
    for gap in losses.missing:
        yield f"    {printable(PurePath(gap.path).name)}: {gap.missing.span} ({gap.kind.value})"


def _lost_text(title: str, lost: Sequence[LostOffsets]) -> Iterator[str]:
    if lost:
        yield title
    for one in lost:
        yield f"    {printable(one.file)} {one.reason.value}: {one.missing.span}"


def rebuilt_text(segment: RebuiltSegment) -> Iterator[str]:
    """Yield a line for the log, and one for each of its indexes."""
    left = segment.size - segment.end
    reach = f"{size_text(left)} at the end cannot be indexed" if left else "indexed to its end"
    yield f"{styled(printable(segment.log.name), 'bold')}: {size_text(segment.size)}, {reach}"
    for index in segment.indexes:
        yield f"  {printable(index.name)}: {index.state}, {len(index.data)} bytes"


def index_text(settings: IndexSettings) -> Iterator[str]:
    """Yield how indexes are built, and why."""
    yield f"index entries every {settings.interval_bytes} bytes: {settings.interval_reason}"
    yield f"naming the {settings.indexed_offset.value} offset of an entry: {settings.offset_reason}"


def _column(title: str, plan: RecoveryPlan) -> Iterator[tuple[str, str]]:
    """Yield label and value of each row."""
    yield "", title
    yield "scans", _segments(plan.scanned)
    cut = plan.cut
    yield "cuts", "nothing" if cut is None else f"{cut.base_offset} at position {cut.position}"
    yield "", "" if cut is None else f"{size_text(cut.size)} removed{_more(plan)}"
    yield "drops", _segments(plan.dropped)
    yield "log end offset", f"{plan.log_end_offset}{', restarted' if plan.restarts else ''}"


def _more(plan: RecoveryPlan) -> str:
    more = len(plan.cuts) - 1
    return f", and {count_text(more, 'more cut')}" if more else ""


def _segments(base_offsets: tuple[int, ...]) -> str:
    if not base_offsets:
        return "no segment"
    if len(base_offsets) <= MANY:
        return ", ".join(map(str, base_offsets))
    return f"{len(base_offsets)} segments, {base_offsets[0]} to {base_offsets[-1]}"


def _remarks(plans: list[RecoveryPlan], differences: tuple[Remark, ...]) -> Iterator[str]:
    """Yield why each cut is made, and what brokers do differently; each once."""
    seen: set[str] = set()
    reasons = [
        f"{cut.base_offset} is cut because of {cut.reason} [{', '.join(cut.requirements)}]"
        for plan in plans
        for cut in plan.cuts
    ]
    remarks = [*(remark for plan in plans for remark in plan.remarks), *differences]
    for text in (*reasons, *map(_remark_text, remarks)):
        if text not in seen:
            seen.add(text)
            yield f"  {printable(text)}"


def _remark_text(remark: Remark) -> str:
    location = f"{PurePath(remark.location.path).name}:{remark.location.position}"
    return f"{location}: {remark.text} [{', '.join(remark.requirements)}]"
