"""The progress of an Iceberg table, from its snapshots, or else from its rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyiceberg.expressions import And, EqualTo

from seglog_format.errors import UsageError
from seglog_format.tables.progress import Progress, progress_of_json
from seglog_format.tables.rows import digest_of_last, last_epoch, last_offset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from seglog_format.tables.progress import TopicPartition

PREFIX: Final = "seglog.progress."
"""Prefix of properties of snapshots; the partition's directory name follows it."""
SEGMENTS_PREFIX: Final = "seglog.segments."
"""Prefix of properties of the table with the closed segments of a log, which only serve to notice compaction."""

FIRST: Final = 1
"""Sequence number of the first snapshot of a table: while it exists, no snapshot was expired."""


def property_of(key: TopicPartition) -> str:
    """Return the name of the property that holds the progress of a partition."""
    return f"{PREFIX}{key[0]}-{key[1]}"


def segments_property_of(key: TopicPartition) -> str:
    """Return the name of the property that holds the closed segments of a partition."""
    return f"{SEGMENTS_PREFIX}{key[0]}-{key[1]}"


def texts_of(progress: Progress) -> tuple[str, str]:
    """Return the values of both properties."""
    found = progress.as_json()
    segments = found.pop("segments")
    return json.dumps(found), json.dumps(segments)


def progress_of_table(table: Table, key: TopicPartition) -> Progress | None:
    """Return the progress of a table in a partition; None if the table does not have the partition.

    The newest snapshot that mentions the partition decides. If snapshots were expired and no other mentions it, the
    rows decide.

    Raises:
        UsageError: the value of a property is not a progress.
    """
    name = property_of(key)
    oldest: Snapshot | None = None
    for snapshot in _ancestors(table):
        oldest = snapshot
        text = snapshot.summary[name] if snapshot.summary is not None else None
        if text is not None:
            return _parsed(text, table, key)
    is_complete = oldest is None or oldest.sequence_number == FIRST
    return None if is_complete else _of_rows(table, key)


def _ancestors(table: Table) -> Iterator[Snapshot]:
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)


def _parsed(text: str, table: Table, key: TopicPartition) -> Progress:
    segments = table.properties.get(segments_property_of(key), "[]")
    try:
        return progress_of_json(json.loads(text) | {"segments": json.loads(segments)})
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"{'.'.join(table.name())}: {property_of(key)} is not the progress of an export: {error}"
        raise UsageError(msg) from error


def _of_rows(table: Table, key: TopicPartition) -> Progress | None:
    is_ours = And(EqualTo("topic", key[0]), EqualTo("partition", key[1]))
    offsets = table.scan(row_filter=is_ours, selected_fields=("offset",)).to_arrow().column("offset")
    if not len(offsets):
        return None
    greatest = max(offsets.to_pylist())
    row = table.scan(row_filter=And(is_ours, EqualTo("offset", greatest))).to_arrow()
    return Progress(
        next_offset=greatest + 1,
        leader_epoch=last_epoch(row),
        last_offset=last_offset(row),
        last_row=digest_of_last(row),
        row_count=len(offsets),
    )
