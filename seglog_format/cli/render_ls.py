"""Listings as tables of plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.cli.output import LEFT, count_text, printable, size_text, table, time_text
from seglog_format.cli.summaries import Contents
from seglog_format.lines.logs import codec_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.cli.summaries import PartitionSummary, SegmentSummary


def contents_cells(contents: Contents) -> list[str]:
    """Return batches, first and last time, magics, codecs."""
    return [
        str(contents.batches),
        time_text(contents.first_timestamp_ms),
        time_text(contents.last_timestamp_ms),
        ",".join(map(str, sorted(contents.magics))) or "-",
        ",".join(map(codec_name, sorted(contents.codecs))) or "-",
    ]


CONTENTS_COLUMNS = ("batches", f"{LEFT}first time", f"{LEFT}last time", f"{LEFT}magic", f"{LEFT}codec")
SEGMENT_COLUMNS = ("base offset", "next offset", "size", *CONTENTS_COLUMNS, f"{LEFT}index", f"{LEFT}state")
OPTIONAL_COLUMNS = (f"{LEFT}last time", f"{LEFT}first time", f"{LEFT}magic", f"{LEFT}index")
"""Left out of a list of segments, in this order, where the terminal is too narrow; ``--json`` always has them."""
LONG_SEGMENT_COLUMNS = (
    "base offset",
    "next offset",
    "bytes",
    *CONTENTS_COLUMNS,
    "index bytes",
    f"{LEFT}offset index",
    f"{LEFT}time index",
    "aborted",
    f"{LEFT}snapshot",
    "tail bytes",
    f"{LEFT}state",
)


def segment_table(summaries: Sequence[SegmentSummary], *, is_long: bool) -> list[str]:
    """Return one row for each segment, and totals.

    Entries of offset and time index are shown as ``17/18``, with ``+`` if zeros follow and ``!`` if more is wrong.
    """
    columns = LONG_SEGMENT_COLUMNS if is_long else SEGMENT_COLUMNS
    cells = _long_segment_cells if is_long else _segment_cells
    optional = () if is_long else OPTIONAL_COLUMNS
    return [*table(columns, map(cells, summaries), optional), _segment_totals(summaries)]


def _segment_cells(summary: SegmentSummary) -> list[str]:
    return [
        str(summary.base_offset),
        str(summary.next_offset),
        size_text(summary.size),
        *contents_cells(summary.contents),
        f"{summary.offset_index or '-'}/{summary.time_index or '-'}",
        summary.state,
    ]


def _long_segment_cells(summary: SegmentSummary) -> list[str]:
    return [
        str(summary.base_offset),
        str(summary.next_offset),
        str(summary.size),
        *contents_cells(summary.contents),
        str(summary.index_size),
        str(summary.offset_index or "-"),
        str(summary.time_index or "-"),
        "-" if summary.aborted is None else str(summary.aborted),
        "yes" if summary.has_snapshot else "-",
        str(summary.tail_size),
        summary.state,
    ]


def _segment_totals(summaries: Sequence[SegmentSummary]) -> str:
    if not summaries:
        return "no segments"
    contents = Contents()
    for summary in summaries:
        contents.merge(summary.contents)
    size = sum(summary.size for summary in summaries)
    index_size = sum(summary.index_size for summary in summaries)
    return (
        f"{count_text(len(summaries), 'segment')}, offsets {summaries[0].base_offset} to {summaries[-1].next_offset},"
        f" {count_text(contents.batches, 'batch')}, {size_text(size)} of log, {size_text(index_size)} of indexes"
    )


PARTITION_COLUMNS = (f"{LEFT}partition", "log start", "log end", "segments", "size", "indexes")


def partition_table(summaries: Sequence[PartitionSummary], *, is_long: bool) -> list[str]:
    """Return one row for each partition, and totals."""
    more = (*CONTENTS_COLUMNS, "recovery point", "high watermark") if is_long else ()
    columns = (*PARTITION_COLUMNS, *more, f"{LEFT}state")
    rows = [_partition_cells(summary, is_long=is_long) for summary in summaries]
    return [*table(columns, rows), _partition_totals(summaries)]


def _partition_cells(summary: PartitionSummary, *, is_long: bool) -> list[str]:
    cells = [
        printable(summary.name),
        str(summary.log_start_offset),
        str(summary.log_end_offset),
        str(summary.segments),
        size_text(summary.size),
        size_text(summary.index_size),
    ]
    if is_long:
        checkpoints = (summary.recovery_point, summary.high_watermark)
        cells += contents_cells(summary.contents or Contents())
        cells += ["-" if offset is None else str(offset) for offset in checkpoints]
    states = [state for state in (summary.problem, summary.state, *(gap.span_text for gap in summary.gaps)) if state]
    return [*cells, printable("; ".join(states) or "ok")]


def _partition_totals(summaries: Sequence[PartitionSummary]) -> str:
    segments = sum(summary.segments for summary in summaries)
    size = sum(summary.size for summary in summaries)
    index_size = sum(summary.index_size for summary in summaries)
    return (
        f"{count_text(len(summaries), 'partition')}, {count_text(segments, 'segment')},"
        f" {size_text(size)} of log, {size_text(index_size)} of indexes"
    )
