"""``seglog tier``: remote stores of tiered segments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS
from seglog_format.cli.options import epilog_of, json_option, remote_argument, store_options
from seglog_format.cli.output import (
    LEFT,
    count_text,
    diagnose,
    printable,
    size_text,
    table,
    write_json,
    write_lines,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.checks import Finding
    from seglog_format.cli.options import RemoteChoice
    from seglog_format.tier.audit import AuditExtent
    from seglog_format.tier.segments import RemoteSegment
    from seglog_format.tier.tier import StoredSummary


# -- ``seglog tier fetch``: segments of a remote store as plain files again --------------------------------------------


TARGET: Final = click.Path(path_type=Path)


@click.command("fetch", epilog=epilog_of("tier fetch"))
@remote_argument
@click.argument("target", metavar="TARGET", type=TARGET)
@click.option("--topic", help="Fetch only segments of this topic.")
@click.option("--partition", type=int, help="Fetch only segments of this partition of each topic.")
@click.option("--segment", "segments", multiple=True, metavar="ID", help="Fetch only this segment; may be repeated.")
@store_options
@json_option
def fetch(
    *,
    remote: RemoteChoice,
    target: Path,
    topic: str | None,
    partition: int | None,
    segments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Write segments of REMOTE as plain files into TARGET, a new directory: logs, indexes, snapshots, byte for byte.

    Everything is written, or nothing. Segments that are not finished are left out, and so are segments outside the
    lineage of the newest segment's leader epochs: they are from a log end that was truncated. --segment fetches one of
    those as well. The exit status is 1 if a segment is left out.
    """
    from seglog_format.errors import UsageError
    from seglog_format.tier.joining import Choice, fetch_segments, segments_to_fetch
    from seglog_format.tier.tier import inventory, segment_of

    tier = remote.open().tier
    asked = [
        each
        for each in inventory(tier, None, topic)
        if partition in {None, each.id.partition.partition} and (not segments or each.id.segment_id in segments)
    ]
    unreadable = [str(each.problem) for each in asked if each.problem is not None]
    wanted = [next(iter(each.objects)).id for each in asked if each.problem is None and tier.is_finished(each.id)]
    if segments:
        named = (segment_of(id_, tier.open(id_)) for id_ in wanted)
        choice = Choice(tuple(each for each in named if each is not None), ())
    else:
        choice = segments_to_fetch(tier, wanted)
    if not wanted:
        msg = f"{tier.address}: no finished segment is asked for"
        raise UsageError(msg)
    fetch_segments(tier, choice.wanted, target)
    for segment in choice.wanted if as_json else ():
        write_json(_as_object(segment))
    for problem in unreadable:
        diagnose(f"a segment is left out: {problem}")
    for segment in choice.superseded:
        where = f"{segment.start_offset} to {segment.end_offset}"
        diagnose(f"segment {segment.id.segment_id}, {where}, is left out: newer leader epochs have these offsets")
    if not as_json:
        traffic, count = tier.traffic, len(choice.wanted)
        write_text(f"{count} segments written; {traffic.size:,} bytes fetched in {traffic.requests} requests")
    return FINDINGS if choice.superseded or unreadable else DONE


def _as_object(segment: RemoteSegment) -> dict[str, Any]:
    partition = segment.id.partition
    return {
        "type": "fetchedSegment",
        "topic": partition.topic,
        "partition": partition.partition,
        "segmentId": segment.id.segment_id,
        "startOffset": segment.start_offset,
        "endOffset": segment.end_offset,
        "bytes": segment.size,
    }


# -- ``seglog tier ls``: the segments of a remote store, one line each -------------------------------------------------


LOGS: Final = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("ls", epilog=epilog_of("tier ls"))
@remote_argument
@click.option("--topic", help="List only the segments of this topic.")
@click.option(
    "--logs", multiple=True, type=LOGS, metavar="DIR", help="A log directory with partitions of __remote_log_metadata."
)
@store_options
@json_option
def ls(*, remote: RemoteChoice, topic: str | None, logs: tuple[Path, ...], as_json: bool) -> int:
    """List the segments in REMOTE: offsets, leader epochs, state, sizes, objects.

    Manifests are fetched, and nothing else; no key is needed. States come from __remote_log_metadata, if --logs names
    the log directories with it; without --logs, it is not known which segments are in use. The exit status is 1 if a
    segment is unfinished, or its manifest is damaged.
    """
    from seglog_format.log.directory import open_log_directory
    from seglog_format.tier.local_metadata import read_metadata_topic
    from seglog_format.tier.tier import inventory

    tier = remote.open().tier
    known = read_metadata_topic(open_log_directory(logs)).partitions if logs else None
    found = list(inventory(tier, known, topic))
    if as_json:
        for each in found:
            write_json(as_object(each, tier.files.sizes))
    else:
        write_lines(_rows(found))
    wrong = [each for each in found if each.problem]
    for each in wrong if not as_json else ():
        diagnose(str(each.problem))
    return FINDINGS if wrong else DONE


def as_object(found: StoredSummary, sizes: dict[str, int]) -> dict[str, Any]:
    """Return one segment for JSON."""
    partition = found.id.partition
    return {
        "type": "remoteSegment",
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "segmentId": found.id.segment_id,
        "startOffset": found.start_offset,
        "endOffset": found.end_offset,
        "leaderEpochs": [{"epoch": epoch, "startOffset": start} for epoch, start in found.epochs],
        "state": found.state,
        "bytes": found.size,
        "storedBytes": found.stored_size,
        "objects": [{"name": each.path, "bytes": sizes[each.path]} for each in found.objects],
        "problem": found.problem,
    }


def _rows(found: list[StoredSummary]) -> list[str]:

    columns = (
        f"{LEFT}partition",
        "start",
        "end",
        f"{LEFT}epochs",
        "size",
        "stored",
        f"{LEFT}segment id",
        f"{LEFT}state",
    )
    cells = [
        [
            printable(f"{each.id.partition.topic}-{each.id.partition.partition}"),
            str(each.start_offset),
            "?" if each.end_offset is None else str(each.end_offset),
            ",".join(str(epoch) for epoch, _ in each.epochs) or "?",
            "?" if each.size is None else size_text(each.size),
            size_text(each.stored_size),
            each.id.segment_id,
            "unreadable" if each.problem else each.state or "-",
        ]
        for each in found
    ]
    stored = sum(each.stored_size for each in found)
    partitions = count_text(len({each.id.partition for each in found}), "partition")
    return [*table(columns, cells), f"{count_text(len(found), 'segment')} of {partitions}, {size_text(stored)} stored"]


# -- ``seglog tier`` ---------------------------------------------------------------------------------------------------


EPILOG: Final = """\b
Examples:
  seglog tier ls s3://bucket/tier
  seglog tier fetch --key key1=key1.pem --topic orders /mnt/tier fetched
  seglog tier audit --logs /var/lib/kafka/data s3://bucket/tier
  seglog tier audit --logs logs --content --key key1=key1.pem /mnt/tier
  seglog tier verify --json /mnt/tier | jq -r .requirement | sort | uniq -c"""


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
    from seglog_format.cli.verify import counted
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
        write_text(counted(counts, _audited(extent)))
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
    from seglog_format.cli.verify import counted
    from seglog_format.log.directory import open_log_directory
    from seglog_format.tier.audit import TierExtent

    extent = TierExtent()
    found = remote.open().verify(open_log_directory(logs) if logs else None, extent=extent)
    counts = _written(found, as_json=as_json)
    if not as_json:
        whole = f"{extent.verified} of {extent.segments} segments read whole"
        write_text(counted(counts, f"{whole}; {extent.objects} objects"))
    return _status(counts)


def _written(found: Iterable[Finding], *, as_json: bool) -> Counter[str]:
    """Write findings, and count them by severity."""
    from seglog_format.cli.verify import write_finding

    counts: Counter[str] = Counter()
    for finding in found:
        counts[finding.severity.value] += 1
        write_finding(finding, as_json=as_json)
    return counts


def _audited(extent: AuditExtent) -> str:
    segments, partitions = count_text(extent.segments, "segment"), count_text(extent.partitions, "partition")
    objects, read = count_text(extent.objects, "object"), count_text(extent.metadata_partitions, "partition")
    return f"{segments} of {partitions}, {extent.logs} with a local log; {objects}; {read} of __remote_log_metadata"


def _status(counts: Counter[str]) -> int:
    return FINDINGS if counts["error"] or counts["warning"] else DONE
