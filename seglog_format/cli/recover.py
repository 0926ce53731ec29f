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

    The exit status is 1 if something is cut, dropped or lost, by the plan or by a full scan, or is missing already, or
    if something beside the logs keeps a broker from starting: that is reported, and not changed. A partition that
    cannot be read is not planned, and not changed.
    """
    status = 0
    from seglog_format.cli.options import settled
    from seglog_format.cli.paths import log_directory_at

    chosen = replace(_options(**options), engine=settled(engine, [path]))
    passing = PassingOver("partitions")
    directory = log_directory_at(path)
    for recovery, full_scan, losses in _recoveries(path, directory, chosen, passing, write=write):
        if recovery.plan.changes_log or full_scan.changes_log or recovery.failure or losses.is_loss or losses.missing:
            status = FINDINGS
        if as_json:
            write_json(as_object(recovery, full_scan, losses, is_written=write))
        else:
            from seglog_format.cli.render_recovery import losses_text, recovery_text

            for line in recovery_text(recovery, full_scan, title=_title(chosen), is_written=write):
                write_text(line)
            for line in losses_text(losses, is_written=write):
                write_text(line)
    start = DONE if directory is None else _start_status(directory, as_json=as_json)
    return max(status, start, passing.status())


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
) -> Iterator[tuple[PreparedRecovery, RecoveryPlan, Losses]]:
    from seglog_format.cli.paths import kept_partitions
    from seglog_format.log.directory import log_directory_above

    if directory is None:
        if not path.is_dir():
            yield _file_recovery(path, options, write=write)
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


def _recovery(
    path: Path, directory: LogDirectory, options: RecoveryOptions, *, write: bool
) -> tuple[PreparedRecovery, RecoveryPlan, Losses]:
    from seglog_format import recover
    from seglog_format.recovery.plan import plan_for_partition

    recovery = recover(path, options=options, directory=directory)
    losses = recovery.losses()
    if write:
        done = recovery.apply()
        return done, done.plan, losses
    full_scan = (
        recovery.plan if options.is_full_scan else plan_for_partition(path, directory, engine=options.engine).full_scan
    )
    return recovery, full_scan, losses


def _file_recovery(
    path: Path, options: RecoveryOptions, *, write: bool
) -> tuple[PreparedRecovery, RecoveryPlan, Losses]:
    from seglog_format.cli.paths import segment_files_at
    from seglog_format.engine.choice import engine_for
    from seglog_format.engine.chosen import kernels_of
    from seglog_format.log.scanning import storage_for
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.index_settings import infer_settings
    from seglog_format.recovery.losses import Losses
    from seglog_format.recovery.plan import Circumstances, plan_recovery

    if write or options.like_broker:
        msg = f"{path}: only directories are recovered, not a file on its own"
        raise UsageError(msg)
    choice = engine_for(options.engine, 0)
    with LogSegment(segment_files_at(path), storage=storage_for(choice.engine)) as segment:
        plan = plan_recovery([segment], is_full_scan=True, kernels=kernels_of(choice))
        settings = infer_settings([segment], interval_bytes=options.interval_bytes)
    return PreparedRecovery(path, Circumstances(), plan, settings, ()), plan, Losses()


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
