"""``seglog cluster``: the state of a cluster, read from the log directories of its brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import PATH_OR_ARCHIVE, json_option, to_timestamp_ms
from seglog_format.cli.output import (
    LEFT,
    count_text,
    diagnose,
    printable,
    size_text,
    table,
    time_text,
    write_line,
    write_lines,
)
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.cluster.cluster import Cluster, Line
    from seglog_format.cluster.metadata_log import MetadataState, TopicEvent


EPILOG: Final = """\b
Examples:
  seglog cluster /var/lib/kafka/data
  seglog cluster --json /disks/broker-1 | jq 'select(.type == "topic")'
  seglog cluster --at-offset 1000 /var/lib/kafka/data
  seglog cluster --history orders /var/lib/kafka/data"""


@click.command(epilog=EPILOG)
@click.argument("paths", type=PATH_OR_ARCHIVE, nargs=-1, required=True)
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
    write_lines(lines if as_json else cluster_text(lines))
    problems = [line["text"] for line in lines if line["type"] == "problem"]
    for problem in problems:
        diagnose(problem)
    return FINDINGS if problems else 0


def _lines(cluster: Cluster, state: MetadataState | None, *, with_secrets: bool) -> Iterator[Line]:
    from seglog_format.cluster.cluster import cluster_line, coordinator_lines, image_lines, problem_lines, replica_lines

    image = cluster.image() if state is None else state.image
    yield cluster_line(cluster, state, image)
    yield from image_lines(image, with_secrets=with_secrets)
    yield from replica_lines(cluster.replicas)
    yield from coordinator_lines(cluster)
    yield from problem_lines(cluster, state)


def _write_history(cluster: Cluster, topic: str, *, as_json: bool) -> int:
    from seglog_format.cluster.metadata_log import topic_history

    if not cluster.metadata_logs:
        msg = "no metadata log in these directories: a history needs one"
        raise UsageError(msg)
    log = max(cluster.metadata_logs, key=lambda each: each.state().end_offset)
    for event in topic_history(log.records(), topic):
        write_line(event_line(event) if as_json else event_text(event))
    return 0


# -- a cluster as text: tables of its brokers, topics, groups and open transactions ------------------------------------


def cluster_text(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the text for the lines of a cluster."""
    by_type = _grouped(lines, "type")
    yield from _heading(by_type["cluster"][0])
    for title, columns, rows in _tables(by_type):
        if rows:
            yield ""
            yield title
            yield from table(columns, rows)


def _grouped(lines: Iterable[Line], name: str) -> dict[str, list[Line]]:
    """Return lines by one of their values."""
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line[name], []).append(line)
    return found


def _heading(line: Line) -> Iterator[str]:
    yield f"cluster {printable(line['clusterId'] or 'without an id')}"
    if line["mode"] == "kraft":
        at = f"metadata up to offset {line['endOffset']}, epoch {line['epoch']}, {time_text(line['timestamp'])}"
        yield at + (f", from snapshot {line['snapshot']}" if line["snapshot"] else "")
        if line["voters"]:
            yield f"voters: {', '.join(str(voter['voterId']) for voter in line['voters'])}"
    else:
        yield "no metadata log: topics are those that have a directory"
    features = (f"{printable(name)} {level}" for name, level in sorted(line["features"].items()))
    if text := ", ".join(features):
        yield f"features: {text}"


def _tables(by_type: dict[str, list[Line]]) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    brokers = [_broker_cells(line) for line in by_type.get("broker", ())]
    yield "Brokers", ("id", f"{LEFT}rack", f"{LEFT}listeners", f"{LEFT}state"), brokers
    columns = (f"{LEFT}topic", f"{LEFT}topic id", "partitions", "replicas here", "offsets", "size", f"{LEFT}settings")
    yield "Topics", columns, list(_topic_cells(by_type))
    yield "Quotas", (f"{LEFT}entity", f"{LEFT}key", "value"), [_quota_cells(line) for line in by_type.get("quota", ())]
    yield "Access control entries", (f"{LEFT}entry",), [[_acl_text(line)] for line in by_type.get("acl", ())]
    users = [[printable(line["name"]), line["mechanism"]] for line in by_type.get("scramUser", ())]
    yield "SCRAM users", (f"{LEFT}user", f"{LEFT}mechanism"), users
    columns = (f"{LEFT}group", f"{LEFT}type", "members", f"{LEFT}topic", "partition", "offset", "lag")
    yield "Groups", columns, list(_group_cells(by_type))
    shared = [_share_cells(line) for line in by_type.get("shareOffset", ())]
    yield "Share groups", (f"{LEFT}group", f"{LEFT}topic id", "partition", "start offset"), shared
    opened = [_transaction_cells(line) for line in by_type.get("transaction", ()) if line["isOpen"]]
    yield "Open transactions", (f"{LEFT}transactional id", f"{LEFT}state", "producer id", f"{LEFT}partitions"), opened


def _broker_cells(line: Line) -> list[str]:
    ends = (f"{each['name']}://{each['host']}:{each['port']}" for each in line["endPoints"])
    state = "fenced" if line["fenced"] else "in use"
    return [str(line["brokerId"]), printable(line["rack"] or "-"), printable(" ".join(ends)), state]


def _topic_cells(by_type: dict[str, list[Line]]) -> Iterator[list[str]]:
    settings: dict[str, list[str]] = {}
    for line in by_type.get("config", ()):
        if line["resourceType"] == "topic":
            settings.setdefault(line["resourceName"], []).append(f"{line['name']}={line['value']}")
    replicas = _grouped(by_type.get("replica", ()), "topic")
    for line in by_type.get("topic", ()):
        copies = replicas.get(line["topic"], [])
        yield [
            printable(line["topic"]),
            line["topicId"] or "-",
            str(line["partitionCount"]),
            str(len(copies)),
            str(sum(_offset_count(copy) for copy in copies)),
            size_text(sum(copy["size"] for copy in copies)),
            printable(" ".join(settings.get(line["topic"], ["-"]))),
        ]


def _offset_count(copy: Line) -> int:
    end: int | None = copy["logEndOffset"]
    return 0 if end is None else end - int(copy["logStartOffset"])


def _quota_cells(line: Line) -> list[str]:
    entity = ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in line["entity"].items())
    return [printable(entity), printable(line["key"]), f"{line['value']:g}"]


def _acl_text(line: Line) -> str:
    pattern = "" if line["patternType"] == "literal" else f"{line['patternType']} "
    what = f"{line['operation']} on {line['resourceType']} {pattern}{line['resourceName']}"
    return printable(f"{line['permission']} {line['principal']} from {line['host']} to {what}")


def _group_cells(by_type: dict[str, list[Line]]) -> Iterator[list[str]]:
    committed = _grouped(by_type.get("committedOffset", ()), "group")
    for line in by_type.get("group", ()):
        head = [printable(line["group"]), line["groupType"], str(len(line["members"]))]
        for each in committed.get(line["group"], ()):
            lag = "-" if each["lag"] is None else str(each["lag"])
            yield [*head, printable(each["topic"]), str(each["partition"]), str(each["offset"]), lag]
            head = ["", "", ""]
        if head[0]:
            yield [*head, "-", "-", "-", "-"]


def _share_cells(line: Line) -> list[str]:
    return [printable(line["group"]), line["topicId"], str(line["partition"]), str(line["startOffset"])]


def _transaction_cells(line: Line) -> list[str]:
    partitions = (f"{topic}-{number}" for topic, numbers in line["partitions"].items() for number in numbers)
    name = printable(line["transactionalId"])
    return [name, line["state"], str(line["producerId"]), printable(" ".join(partitions))]


def event_line(event: TopicEvent) -> dict[str, Any]:
    """Return an event of a topic's history for JSON."""
    return {
        "type": "topicEvent",
        "offset": event.offset,
        "timestamp": event.timestamp_ms,
        "event": event.event,
        "topicId": event.topic_id or None,
        "fields": event.fields,
    }


def event_text(event: TopicEvent) -> str:
    """Return an event of a topic's history as one line."""
    left_out = {"topicId", "resourceType", "resourceName"}
    fields = " ".join(f"{name}={value}" for name, value in event.fields.items() if name not in left_out)
    return printable(f"{time_text(event.timestamp_ms)}  offset {event.offset}  {event.event}  {fields}".rstrip())


def resurrection_text(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the text for the plan of a new node."""
    by_type = _grouped(lines, "type")
    (node,) = by_type["node"]
    yield f"node {node['nodeId']} for Kafka {node['kafka']}, cluster {printable(node['clusterId'])}"
    yield ", ".join(f"{printable(name)} {level}" for name, level in sorted(node["features"].items()))
    yield ""
    columns = (f"{LEFT}topic", "partition", "from offset", "to offset", "size", f"{LEFT}taken from")
    yield from table(columns, [_log_cells(line) for line in by_type.get("log", ())])
    if notes := by_type.get("note"):
        yield from ("", "What differs from the old cluster:", *map(_note_text, notes))
    if settings := by_type.get("oldSettings"):
        yield from ("", "Old values of settings that the node has otherwise:", *_settings_texts(settings))


def _log_cells(line: Line) -> list[str]:
    offsets = [str(line["logStartOffset"]), str(line["logEndOffset"])]
    remote = line["remoteSegmentCount"]
    return [
        printable(line["topic"]),
        str(line["partition"]),
        *offsets,
        size_text(line["size"]),
        printable(line["from"] or "nothing is left")
        + (f" and {count_text(remote, 'remote segment')}" if remote else ""),
    ]


def _note_text(line: Line) -> str:
    return printable(f"  {line['about']}: {line['text']}")


def _settings_texts(lines: Sequence[Line]) -> Iterator[str]:
    """Yield a line for all topics that had the same settings."""
    topics: dict[str, list[str]] = {}
    for line in lines:
        values = (f"{name} ({'default' if value is None else value})" for name, value in line["settings"].items())
        topics.setdefault(", ".join(values), []).append(line["topic"])
    for values_text, names in topics.items():
        yield printable(f"  {values_text}: {' '.join(names)}")
