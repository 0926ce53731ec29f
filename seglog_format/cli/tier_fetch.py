"""``seglog tier fetch``: segments of a remote store as plain files again."""

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
    from seglog_format.tier.segments import RemoteSegment

TARGET: Final = click.Path(path_type=Path)


@click.command("fetch", epilog=epilog_of("tier fetch"))
@remote_argument
@click.argument("target", metavar="TARGET", type=TARGET)
@click.option("--topic", help="Fetch only segments of this topic.")
@click.option("--partition", type=int, help="Fetch only segments of this partition of each topic.")
@click.option("--segment", "segments", multiple=True, metavar="ID", help="Fetch only this segment; may be repeated.")
@store_options
@json_option
def command(
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
