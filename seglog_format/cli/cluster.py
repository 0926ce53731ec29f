"""``seglog cluster``: the state of a cluster, read from the log directories of its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from seglog_format.cli.exit_status import FINDINGS
from seglog_format.cli.options import PATH, json_option, to_timestamp_ms
from seglog_format.cli.output import diagnose, write_json, write_text
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.lines import Line
    from seglog_format.cluster.metadata_log import MetadataState

EPILOG: Final = """\b
Examples:
  seglog cluster /var/lib/kafka/data
  seglog cluster --json /disks/broker-1 | jq 'select(.type == "topic")'
  seglog cluster --at-offset 1000 /var/lib/kafka/data
  seglog cluster --history orders /var/lib/kafka/data"""


@click.command(epilog=EPILOG)
@click.argument("paths", type=PATH, nargs=-1, required=True)
@click.option(
    "--at-offset", type=click.IntRange(min=0), metavar="OFFSET", help="Replay the metadata log up to this offset."
)
@click.option(
    "--at-time", callback=to_timestamp_ms, metavar="TIME", help="Leave out records of a later time: ms or ISO."
)
@click.option("--history", metavar="TOPIC", help="Print when this topic was created, changed and deleted instead.")
@click.option("--secrets", is_flag=True, help="Also print keys of SCRAM users, and passwords in settings.")
@json_option
def command(
    paths: tuple[Path, ...],
    *,
    at_offset: int | None,
    at_time: int | None,
    history: str | None,
    secrets: bool,
    as_json: bool,
) -> int:
    """Show the cluster that the log directories PATHS belong to.

    Brokers, topics, partitions, settings, quotas, ACLs and users come from the metadata log of KRaft (its newest
    snapshot, and the log after it); without one, topics are those that have a directory. Groups with their committed
    offsets and lag, and open transactions, come from Kafka's internal topics. Name the directories of several brokers
    to see all their replicas. The exit status is 1 where something could not be read.
    """
    from seglog_format.cluster.cluster import open_cluster

    cluster = open_cluster(paths)
    if history is not None:
        return _write_history(cluster, history, as_json=as_json)
    state = cluster.metadata(at_offset=at_offset, at_time_ms=at_time)
    lines = list(_lines(cluster, state, with_secrets=secrets))
    _write(lines, as_json=as_json)
    problems = [line["text"] for line in lines if line["type"] == "problem"]
    for problem in problems:
        diagnose(problem)
    return FINDINGS if problems else 0


def _lines(cluster: Cluster, state: MetadataState | None, *, with_secrets: bool) -> Iterator[Line]:
    from seglog_format.cluster.lines import cluster_line, coordinator_lines, image_lines, problem_lines, replica_lines

    image = cluster.image() if state is None else state.image
    yield cluster_line(cluster, state, image)
    yield from image_lines(image, with_secrets=with_secrets)
    yield from replica_lines(cluster.replicas)
    yield from coordinator_lines(cluster)
    yield from problem_lines(cluster, state)


def _write(lines: list[Line], *, as_json: bool) -> None:
    if as_json:
        for line in lines:
            write_json(line)
        return
    from seglog_format.cli.render_cluster import cluster_text

    for text in cluster_text(lines):
        write_text(text)


def _write_history(cluster: Cluster, topic: str, *, as_json: bool) -> int:
    from seglog_format.cli.render_cluster import event_line, event_text
    from seglog_format.cluster.metadata_log import topic_history

    if not cluster.metadata_logs:
        msg = "no metadata log in these directories: a history needs one"
        raise UsageError(msg)
    log = max(cluster.metadata_logs, key=lambda each: each.state().end_offset)
    for event in topic_history(log.records(), topic):
        if as_json:
            write_json(event_line(event))
        else:
            write_text(event_text(event))
    return 0
