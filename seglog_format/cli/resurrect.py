"""``seglog resurrect``: a node that a stock Kafka starts from, made from the disks of a lost cluster."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import PATH, json_option, remote_options
from seglog_format.cli.output import progress, write_lines, write_text

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.cluster.resurrection import PreparedResurrection

RELEASES: Final = ("3.9", "4.1", "4.4")
"""A test compares them with those of `seglog_format.cluster.image`."""

RENAMED: Final = ("stray", "delete", "future")
"""A test compares them with those of `seglog_format.cluster.cluster`."""


def _counts(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    counts = {}
    for text in values:
        topic, _, number = text.rpartition("=")
        if not topic or not (number.isascii() and number.isdecimal()):
            msg = f"{text!r} is not TOPIC=N, such as __consumer_offsets=50"
            raise click.BadParameter(msg)
        counts[topic] = int(number)
    return counts


EPILOG: Final = """\b
Examples:
  seglog resurrect /disks/broker-1 /disks/broker-2
  seglog resurrect /disks/broker-1 -o /var/lib/kafka/node
  seglog resurrect /disks/broker-1 --remote s3://bucket/tier -o node
  seglog resurrect --json /disks/broker-1 | jq 'select(.type == "note")'"""


@click.command(epilog=EPILOG)
@click.argument("paths", type=PATH, nargs=-1, required=True)
@click.option("-o", "--output", type=PATH, metavar="NODE", help="Write here: a new or empty directory.")
@click.option(
    "--kafka", type=click.Choice(RELEASES), default=RELEASES[-1], show_default=True, help="The release to start."
)
@click.option("--node-id", type=click.IntRange(0, 2**31 - 1), default=1, show_default=True, help="Id of the new node.")
@click.option("--downgrade", is_flag=True, help="Allow a release that does not know all features of the cluster.")
@click.option("--unknown-topics", is_flag=True, help="Include topics that the metadata does not know.")
@click.option(
    "--renamed",
    type=click.Choice(RENAMED),
    multiple=True,
    help="Include directories that a broker renamed; may be repeated.",
)
@click.option("--cluster-id", metavar="ID", help="Use the metadata of this cluster where PATHS name several.")
@click.option(
    "--partitions",
    metavar="TOPIC=N",
    multiple=True,
    callback=_counts,
    help="Number of partitions of a coordinator's topic without metadata, instead of a guess; may be repeated.",
)
@click.option(
    "--link-closed",
    is_flag=True,
    help="Link closed log files instead of copying them; then never write to the sources.",
)
@remote_options
@json_option
def command(
    paths: tuple[Path, ...],
    *,
    output: Path | None,
    remote: RemoteChoice | None,
    as_json: bool,
    **choices: Any,  # noqa: ANN401 - click passes what the options gave
) -> int:
    """Make a node directory from the log directories PATHS of a lost cluster. Without -o, only show the plan.

    A stock Kafka starts from it as broker and controller in one. Records keep their offsets, timestamps and headers;
    transactions, committed offsets of groups, settings, quotas, ACLs and SCRAM users are kept as far as PATHS hold
    them. Nothing at PATHS is changed. Of several replicas, the node gets the one that an election would keep; of a
    damaged log, every intact batch, and from the other replicas those that it lacks, as 'seglog salvage A B' does.
    Segments in the store at --remote are copied to the disk; each is read once for the plan, and once to write it.

    Retention is switched off for all topics, because the first start would delete old segments within seconds; the
    old settings are in resurrection.jsonl in the new directory, and settings for the first start in server.properties.

    The exit status is 1 if the node differs from the old cluster in more than that; each difference is reported.
    """
    from seglog_format.cluster.resurrection import resurrect

    plan = resurrect(paths, output, remote=None if remote is None else remote.open(), **choices)
    _report(plan, as_json=as_json)
    status = FINDINGS if plan.made.notes else 0
    if output is not None:
        _write(plan)
        if not as_json:
            write_text(f"written: start Kafka {plan.node.release.version} with {output / 'server.properties'}")
    elif not as_json:
        write_text("nothing written; -o NODE writes it")
    return status


def _report(plan: PreparedResurrection, *, as_json: bool) -> None:
    from seglog_format.cli.cluster import resurrection_text

    lines = list(plan.report())
    write_lines(lines if as_json else resurrection_text(lines))


def _write(plan: PreparedResurrection) -> None:
    written = count(1)
    with progress("Copying", len(plan.made.logs)) as advance:
        plan.apply(lambda _key: advance(next(written)))
