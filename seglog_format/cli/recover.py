"""``seglog recover``: what a broker's recovery would cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import json_option, path_argument
from seglog_format.cli.output import progress, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.lifecycle.recovery import PartitionRecovery, RecoveryPlan
    from seglog_format.lifecycle.segment_scan import Cut, Remark

EPILOG: Final = """\b
Examples:
  seglog recover /var/lib/kafka/data
  seglog recover --json my-topic-0 | jq .plan.cuts"""


@click.command(epilog=EPILOG)
@path_argument
@json_option
def command(path: Path, *, as_json: bool) -> int:
    """Tell what a broker would cut when it starts on the directory at PATH. Nothing is changed.

    A broker scans from the checkpointed recovery point on; a scan of everything may find more, so that both are told
    side by side. The exit status is 1 when either would cut anything. A log file is scanned on its own.
    """
    status = 0
    for recovery in _recoveries(path):
        if recovery.plan.changes_log or recovery.full_scan.changes_log:
            status = FINDINGS
        if as_json:
            write_json(as_object(recovery))
        else:
            from seglog_format.cli.render_recovery import recovery_text

            for line in recovery_text(recovery):
                write_text(line)
    return status


def _recoveries(path: Path) -> Iterator[PartitionRecovery]:
    from seglog_format.cli.places import log_directory_at
    from seglog_format.lifecycle.recovery import DELETE_STATE, plan_for_partition

    directory = log_directory_at(path)
    if directory is None:
        yield plan_for_partition(path) if path.is_dir() else _file_recovery(path)
        return
    entries = [entry for entry in directory.listing.partitions if entry.name.state != DELETE_STATE]
    with progress("Scanning", len(entries)) as advance:
        for number, entry in enumerate(entries, 1):
            yield plan_for_partition(entry.path, directory)
            advance(number)


def _file_recovery(path: Path) -> PartitionRecovery:
    from seglog_format.cli.places import segment_files_at
    from seglog_format.lifecycle.recovery import PartitionRecovery, plan_recovery
    from seglog_format.log.segment import LogSegment

    with LogSegment(segment_files_at(path)) as segment:
        plan = plan_recovery([segment], is_full_scan=True)
    return PartitionRecovery(path, has_clean_shutdown=False, plan=plan, full_scan=plan)


def as_object(recovery: PartitionRecovery) -> dict[str, Any]:
    """One partition for JSON."""
    return {
        "type": "recovery",
        "directory": recovery.path.name,
        "hasCleanShutdown": recovery.has_clean_shutdown,
        "plan": _plan(recovery.plan),
        "fullScan": _plan(recovery.full_scan),
    }


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


def _remark(remark: Remark) -> dict[str, Any]:
    return {
        "file": remark.location.path,
        "position": remark.location.position,
        "requirements": list(remark.requirements),
        "text": remark.text,
    }
