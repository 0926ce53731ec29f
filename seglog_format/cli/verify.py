"""``seglog verify``: a check of files against the requirements."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE
from seglog_format.cli.options import (
    PATH_OR_INPUT,
    engine_option,
    json_option,
    limit_option,
    range_option,
    remote_options,
    stats_option,
    write_statistics,
)
from seglog_format.cli.output import (
    count_text,
    diagnose,
    printable,
    progress,
    styled,
    summing,
    write_line,
    write_text,
)
from seglog_format.cli.paths import unreadable_text
from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.checks import Finding
    from seglog_format.checks.finding import Extent
    from seglog_format.cli.options import RemoteChoice


EPILOG: Final = """\b
Examples:
  seglog verify my-topic-0
  seglog verify --severity error /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog verify topic-0/*.log topic-0/*.index
  seglog verify --json my-topic-0 | jq -r .requirement | sort | uniq -c"""

SEVERITIES: Final = ("error", "warning", "note")


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH_OR_INPUT)
@json_option
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="note",
    show_default=True,
    help="Least severity to print; what is not printed still counts.",
)
@click.option(
    "--compacted/--not-compacted",
    default=None,
    help="Whether the logs are compacted, so offsets missing between segments are no warning; inferred by default.",
)
@click.option(
    "--base-offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="Base offset of a log file whose name has none, such as standard input; by default its first offset.",
)
@range_option
@limit_option
@engine_option
@stats_option("Report how many entries compiled code skipped, and how many it left to slower code.")
@remote_options
def command(  # noqa: PLR0913 - an option each
    paths: tuple[Path, ...],
    *,
    as_json: bool,
    severity: str,
    compacted: bool | None,
    base_offset: int | None,
    limit: int,
    engine: str,
    stats: bool,
    remote: RemoteChoice | None,
    **wanted: Any,  # noqa: ANN401 - click passes what the options gave
) -> int:
    """Check the files at each PATH against the numbered requirements of the specification.

    Several log directories are checked against each other, too, unless they belong to different brokers. A broken MUST
    is an error, a broken SHOULD a warning; a note reports something legal that is worth knowing. The exit status is 1
    if there is an error, a warning of offsets missing from a log, or no file at all, and 3 if --limit refuses a batch.
    Compaction leaves such gaps: a log counts as compacted if the cleaner's checkpoint beside it names it, if Kafka
    compacts the topic by itself, if offsets are missing inside its segments too, or with --compacted. Records lost
    inside a segment look the same: use --not-compacted for a topic that is not compacted, and for the output of 'seglog
    salvage' from such a topic. 'seglog explain' prints a requirement.

    A file under another name is checked as a log if it begins with a whole batch. With - as PATH, standard input is.

    In a tiered partition, local offsets are missing if no segment in REMOTE holds them, or, without --remote, if no
    segment that __remote_log_metadata beside the partition names does. Without either, a warning says which offsets are
    not here, with the exit status 0. 'seglog tier verify' reads the segments themselves.

    With --from, --to, --since or --until, only batches of this range are checked, which standard error says, and the
    exit status is that of these batches. TIME is milliseconds, an ISO time, or how long ago: 2h, 30m, 7d. A batch is
    newer than --until if its latest record is, and the first such batch of a log is also checked.
    """
    from seglog_format.checks import verify
    from seglog_format.checks.finding import Extent
    from seglog_format.engine import Engine, engine_for
    from seglog_format.log.path_kind import path_kind, size_of_logs
    from seglog_format.tier.local_metadata import LocalMetadataTopic

    counts: Counter[str] = Counter()
    status, extent = DONE, Extent()
    for path in paths:
        path_kind(path)
    shown = SEVERITIES[: SEVERITIES.index(severity) + 1]
    size = sum(map(size_of_logs, paths))
    known = LocalMetadataTopic() if remote is None else remote.open()
    chosen = engine_for(Engine(engine), size).engine
    is_range = any(each is not None for each in wanted.values())
    wanted |= {"limit": limit, "engine": chosen, "compacted": compacted, "remote": known, "base_offset": base_offset}
    with progress("Verifying", size) as advance:
        add = summing(advance)
        each = (verify(path, advance=add, extent=extent, **wanted) for path in paths)
        for finding in chain(chain.from_iterable(each), _across(paths)):
            counts[finding.severity.value] += 1
            status = max(status, status_of(finding))
            if finding.severity.value in shown:
                write_finding(finding, as_json=as_json)
    if not as_json:
        write_text(summary(counts, extent))
    if stats:
        done = {"prefiltered": extent.prefiltered}
        write_statistics(done, extent.fallbacks, f"{extent.prefiltered} prefiltered", as_json=as_json)
    if is_range:
        diagnose("only batches of this range were checked: no other batches, no indexes or other files, no gaps")
    for name in extent.unread:
        diagnose(unreadable_text(name, Path(name).stat().st_size, Path(name)))
    return status if extent.files and not extent.unread else max(status, FINDINGS)


def _across(paths: tuple[Path, ...]) -> Iterator[Finding]:
    """Yield the findings for which several log directories of one broker have to be compared."""
    from seglog_format.checks.verify import repeated_partitions
    from seglog_format.log.path_kind import PathKind, path_kind

    return repeated_partitions([path for path in paths if path_kind(path) is PathKind.LOG_DIRECTORY])


def write_finding(finding: Finding, *, as_json: bool) -> None:
    """Write one finding, as text or as JSON."""
    write_line(as_object(finding) if as_json else finding_text(finding))


def status_of(finding: Finding) -> int:
    """Return the exit status that a finding alone leads to."""
    if finding.is_unchecked:
        return UNREADABLE
    return FINDINGS if finding.is_failure else DONE


def as_object(finding: Finding) -> dict[str, Any]:
    """Return one finding for JSON."""
    return {
        "type": "finding",
        "file": finding.location.path,
        "position": finding.location.position,
        "field": kafka_name(finding.location.field),
        "severity": finding.severity.value,
        "requirement": finding.requirement,
        "expected": finding.expected,
        "found": finding.found,
        "message": finding.message,
        "count": finding.count,
        "missing": None if finding.missing is None else finding.missing.as_object(),
    }


# -- findings as text --------------------------------------------------------------------------------------------------


COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}


def finding_text(finding: Finding) -> str:
    """Return one finding on one line, its severity first."""
    severity = finding.severity.value
    return f"{styled(severity, COLOURS[severity])}: {printable(str(finding))}"


def summary(counts: Mapping[str, int], extent: Extent) -> str:
    """Return the number of findings, and how much was checked."""
    if not extent.files:
        return "nothing was checked: there is no file"
    checked = f"{count_text(extent.files, 'file')}, {count_text(extent.batches, 'batch')} checked"
    return counted(counts, checked)


def counted(counts: Mapping[str, int], checked: str) -> str:
    """Return the number of findings of each severity, and in words what was checked."""
    found = [count_text(counts[severity], severity) for severity in COLOURS if counts.get(severity)]
    return f"{', '.join(found) or 'no problems found'} ({checked})"
