"""``seglog recover``: the plan of recovery, and its execution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import DONE, FINDINGS
from seglog_format.cli.options import (
    engine_option,
    generation_option,
    index_interval_option,
    json_option,
    path_argument,
)
from seglog_format.cli.output import write_json, write_text
from seglog_format.cli.passing_over import PassingOver
from seglog_format.cli.progress import progress
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks import Finding
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.gaps import Gap
    from seglog_format.recovery.apply import PreparedRecovery, RecoveryOptions
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.losses import Losses
    from seglog_format.recovery.plan import RecoveryPlan
    from seglog_format.recovery.segment_scan import Cut, Remark
    from seglog_format.recovery.segment_split import Split
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
@path_argument
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
    from seglog_format.cli.output import printable
    from seglog_format.cli.paths import log_directory_at
    from seglog_format.cli.verify import as_object as finding_object
    from seglog_format.cli.verify import status_of

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
            from seglog_format.cli.render_recovery import losses_text, recovery_text

            for line in recovery_text(recovery, full_scan, title=_title(chosen), is_written=write):
                write_text(line)
            for line in losses_text(losses, is_written=write):
                write_text(line)
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
        if as_json:
            write_json({"type": "start", "effect": problem.effect.value, "text": str(problem.error)})
        else:
            write_text(printable(str(problem)))
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
    from seglog_format.recovery.losses import Losses

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
    from seglog_format.engine.choice import engine_for
    from seglog_format.engine.columnar import kernels_of
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
