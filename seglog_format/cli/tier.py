"""``seglog tier``: remote stores of tiered segments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.exit_status import DONE, FINDINGS
from seglog_format.cli.options import epilog_of, json_option
from seglog_format.cli.output import write_json, write_text
from seglog_format.cli.tier_fetch import command as fetch
from seglog_format.cli.tier_ls import command as ls
from seglog_format.cli.tier_options import remote_argument, store_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.checks import Finding
    from seglog_format.cli.tier_options import RemoteChoice
    from seglog_format.tier.audit import AuditExtent

EPILOG: Final = """\b
Examples:
  seglog tier ls s3://bucket/tier
  seglog tier fetch --key key1=key1.pem --topic orders /mnt/tier fetched
  seglog tier audit --logs /var/lib/kafka/data s3://bucket/tier
  seglog tier audit --logs logs --content --key key1=key1.pem /mnt/tier
  seglog tier verify --json /mnt/tier | jq -r .requirement | sort | uniq -c"""

LOGS: Final = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(epilog=EPILOG)
def command() -> None:
    """List, fetch and check remote stores of tiered segments, without a broker.

    REMOTE is a folder, or an address such as s3://bucket/prefix. Nothing is ever written to it.
    """


command.add_command(ls)
command.add_command(fetch)


@command.command(epilog=epilog_of("tier audit"))
@remote_argument
@click.option(
    "--logs",
    multiple=True,
    required=True,
    type=LOGS,
    metavar="DIR",
    help="A log directory of a broker; may be repeated. All partitions of __remote_log_metadata have to be among them.",
)
@click.option("--content", is_flag=True, help="Also read every finished segment whole, as 'seglog tier verify' does.")
@click.option("--retention-ms", type=int, default=-1, help="Report segments whose records are all this old, or older.")
@click.option("--retention-bytes", type=int, default=-1, help="Report segments beyond this size of a partition.")
@click.option("--now-ms", type=int, help="The time that --retention-ms counts from; by default now.")
@store_options
@json_option
def audit(  # noqa: PLR0913 - an option each
    *,
    remote: RemoteChoice,
    logs: tuple[Path, ...],
    content: bool,
    retention_ms: int,
    retention_bytes: int,
    now_ms: int | None,
    as_json: bool,
) -> int:
    """Check REMOTE against the metadata topic, leader epochs and log start offsets in log directories.

    Reports objects that no record names; segments with objects missing; offsets that no segment holds; and segments
    that overlap, that are outside the log's lineage, whose copying or deletion never ended, or that should have been
    deleted. The exit status is 1 if there is an error or a warning. Brokers should not run meanwhile: copies in
    progress are reported.
    """
    from seglog_format.log.directory import open_log_directory
    from seglog_format.tier.audit import AuditExtent

    extent = AuditExtent()
    found = remote.open().audit(
        open_log_directory(logs),
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        now_ms=now_ms,
        has_content=content,
        extent=extent,
    )
    counts = _written(found, as_json=as_json)
    if not as_json:
        write_text(_summary(counts, _audited(extent)))
    return _status(counts)


@command.command(epilog=epilog_of("tier verify"))
@remote_argument
@click.option(
    "--logs",
    multiple=True,
    type=LOGS,
    metavar="DIR",
    help="A log directory of a broker, to compare with __remote_log_metadata as well; may be repeated.",
)
@store_options
@json_option
def verify(*, remote: RemoteChoice, logs: tuple[Path, ...], as_json: bool) -> int:
    """Read every segment of REMOTE whole, and check log, indexes, manifest and record against one another.

    The exit status is 1 if there is an error or a warning.
    """
    from seglog_format.log.directory import open_log_directory
    from seglog_format.tier.audit import TierExtent

    extent = TierExtent()
    found = remote.open().verify(open_log_directory(logs) if logs else None, extent=extent)
    counts = _written(found, as_json=as_json)
    if not as_json:
        whole = f"{extent.verified} of {extent.segments} segments read whole"
        write_text(_summary(counts, f"{whole}; {extent.objects} objects"))
    return _status(counts)


def _written(found: Iterable[Finding], *, as_json: bool) -> Counter[str]:
    """Write findings, and count them by severity."""
    from seglog_format.cli.render_findings import finding_text
    from seglog_format.cli.verify import as_object

    counts: Counter[str] = Counter()
    for finding in found:
        counts[finding.severity.value] += 1
        if as_json:
            write_json(as_object(finding))
        else:
            write_text(finding_text(finding))
    return counts


def _audited(extent: AuditExtent) -> str:
    from seglog_format.cli.output import count_text

    segments, partitions = count_text(extent.segments, "segment"), count_text(extent.partitions, "partition")
    objects, read = count_text(extent.objects, "object"), count_text(extent.metadata_partitions, "partition")
    return f"{segments} of {partitions}, {extent.logs} with a local log; {objects}; {read} of __remote_log_metadata"


def _summary(counts: Counter[str], looked: str) -> str:
    from seglog_format.cli.output import count_text
    from seglog_format.cli.render_findings import COLOURS

    counted = [count_text(counts[severity], severity) for severity in COLOURS if counts[severity]]
    return f"{', '.join(counted) or 'no problems found'} ({looked})"


def _status(counts: Counter[str]) -> int:
    return FINDINGS if counts["error"] or counts["warning"] else DONE
