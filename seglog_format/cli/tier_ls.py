"""``seglog tier ls``: the segments of a remote store, one line each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import DONE, FINDINGS
from seglog_format.cli.options import epilog_of, json_option
from seglog_format.cli.output import diagnose, write_json, write_text
from seglog_format.cli.tier_options import remote_argument, store_options

if TYPE_CHECKING:
    from seglog_format.cli.tier_options import RemoteChoice
    from seglog_format.tier.tier import StoredSummary

LOGS: Final = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("ls", epilog=epilog_of("tier ls"))
@remote_argument
@click.option("--topic", help="List only the segments of this topic.")
@click.option(
    "--logs", multiple=True, type=LOGS, metavar="DIR", help="A log directory with partitions of __remote_log_metadata."
)
@store_options
@json_option
def command(
    *,
    remote: RemoteChoice,
    topic: str | None,
    logs: tuple[Path, ...],
    as_json: bool,
) -> int:
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
        for row in _rows(found):
            write_text(row)
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
    from seglog_format.cli.output import count_text, printable, size_text
    from seglog_format.cli.render_ls import LEFT, table

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
