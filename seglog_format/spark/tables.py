"""On an executor: the tables batches, segments and findings, which decode no record."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.checks import verify
from seglog_format.engine.columnar import batch_tables
from seglog_format.field_names import kafka_name
from seglog_format.log.scanning import SegmentSource
from seglog_format.model import (
    CODEC_MASK,
    CONTROL_BIT,
    INT64_MAX,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CompressionCodec,
    RecordBatchHeader,
)
from seglog_format.spark.damage import Damage, parts_of, refuse_unexpected_end
from seglog_format.spark.options import FAIL_FAST
from seglog_format.storage.remote_storage import download

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.engine.columnar import BatchTable
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.log.scanning import FallbackEntry
    from seglog_format.log.segment import LogSegment
    from seglog_format.spark.pieces import DirectoryTask, Piece, Task
    from seglog_format.spark.task_storage import TaskStorage
    from seglog_format.storage.log_storage import LogStorage

STORED: Final = {
    "size": "size",
    "magic": "magic",
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "recordsCount": "records_count",
    "baseTimestamp": "base_timestamp_ms",
    "maxTimestamp": "max_timestamp_ms",
    "leaderEpoch": "partition_leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "baseSequence": "base_sequence",
    "crc": "crc",
}
"""Columns that are header fields as stored; -1 if a format has no such field."""
CODECS: Final = pa.array([*(codec.label for codec in CompressionCodec), *([None] * (CODEC_MASK + 1))], pa.string())
"""Names of codecs by number; null for an unknown number."""


def batch_rows(task: Task, schema: pa.Schema, mode: str, storage: TaskStorage) -> Iterator[pa.RecordBatch]:
    """Yield a row for each entry; a wrong checksum is no error but is shown in ``crcIsValid``.

    Raises:
        FormatError: in mode ``failfast``: a log that cannot be walked to its end.
    """
    for piece in task.pieces:
        with closing(storage.segment(piece)) as segment:
            for part in parts_of(piece, segment, skips_damage=mode != FAIL_FAST):
                if not isinstance(part, Damage):
                    yield from _entries(part, segment, schema)


def _entries(piece: Piece, segment: LogSegment, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield entries as tables; an entry that the fast path does not cover is a row from the fallback decoder."""
    source, tables = SegmentSource(segment, INT64_MAX, None), batch_tables()
    position, previous = piece.start, piece.previous
    end = source.size if piece.end is None else piece.end
    while position < end:
        lowest = max(piece.base_offset, previous + 1)
        for table in tables(source, position=position, end=end, first_offset=lowest, last_offset=piece.last_allowed):
            yield _of_table(table, piece, schema)
            position, previous = table.end, int(table.column("last_offset")[-1])
        if position >= end:
            return
        entry = source.fallback(position, previous, 0)
        if entry is None:
            refuse_unexpected_end(piece, segment, position)
            return
        yield _of_entry(entry, position, piece, schema)
        position, previous = entry.end, entry.last_offset


def _of_table(table: BatchTable, piece: Piece, schema: pa.Schema) -> pa.RecordBatch:
    attributes, count = table.column("attributes"), len(table)
    made: dict[str, Any] = {
        "topic": pa.repeat(pa.scalar(piece.topic), count),
        "partition": pa.repeat(pa.scalar(piece.partition), count),
        "file": pa.repeat(pa.scalar(piece.log), count),
        "position": table.column("position").copy(),
        "codec": CODECS.take(pa.array(attributes & CODEC_MASK)),
        "timestampType": (attributes & TIMESTAMP_TYPE_BIT) // TIMESTAMP_TYPE_BIT,
        "isTransactional": (attributes & TRANSACTIONAL_BIT) != 0,
        "isControl": (attributes & CONTROL_BIT) != 0,
        "crcIsValid": table.column("crc_is_valid") != 0,
    }
    arrays = [
        pa.array(made[field.name] if field.name in made else table.column(STORED[field.name])).cast(field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _of_entry(entry: FallbackEntry, position: int, piece: Piece, schema: pa.Schema) -> pa.RecordBatch:
    header = entry.header
    codec = CODECS[header.codec_id].as_py()
    row: dict[str, Any] = {
        name: -1 if (value := getattr(header, stored, None)) is None else value for name, stored in STORED.items()
    }
    row |= {
        "topic": piece.topic,
        "partition": piece.partition,
        "file": piece.log,
        "position": position,
        "size": header.size_in_bytes,
        "codec": codec,
        "timestampType": int(bool(header.attributes & TIMESTAMP_TYPE_BIT)),
        "isTransactional": isinstance(header, RecordBatchHeader) and header.is_transactional,
        "isControl": isinstance(header, RecordBatchHeader) and header.is_control,
        "crcIsValid": True,  # else the fallback decoder had refused it
    }
    return rows_as_batch([row], schema)


def segment_rows(task: DirectoryTask, schema: pa.Schema, stores: TaskStorage) -> Iterator[pa.RecordBatch]:
    """Yield a row for each segment of a directory, tiered ones included; no log is opened."""
    listing = stores.listing(task.path)
    segments, storage = listing.segments, listing.storage
    following = [*(each.base_offset for each in segments[1:]), None]
    rows = [_segment(task, files, storage, next_base) for files, next_base in zip(segments, following, strict=False)]
    yield rows_as_batch(rows, schema)


def _segment(task: DirectoryTask, files: SegmentFiles, storage: LogStorage, next_base: int | None) -> dict[str, Any]:
    status = storage.status(files.log)
    return {
        "topic": task.topic,
        "partition": task.partition,
        "file": storage.name_of(files.log),
        "baseOffset": files.base_offset,
        "nextBaseOffset": next_base,
        "size": status.size,
        "offsetIndexSize": _size(files.offset_index, storage),
        "timeIndexSize": _size(files.time_index, storage),
        "transactionIndexSize": _size(files.transaction_index, storage),
        "hasSnapshot": files.snapshot is not None,
        "lastModified": None if status.modified is None else datetime.fromtimestamp(status.modified, UTC),
        "topicId": task.topic_id,
    }


def _size(path: Path | None, storage: LogStorage) -> int | None:
    return None if path is None else storage.status(path).size


def finding_rows(task: DirectoryTask, schema: pa.Schema, stores: TaskStorage) -> Iterator[pa.RecordBatch]:
    """Yield a row for each finding of the validator in a directory; a remote directory is downloaded first."""
    directory, storage = Path(task.path), stores.of(task.path)
    if storage.is_local:
        yield _findings(task, directory, schema, stores.tier)
        return
    with TemporaryDirectory(prefix="seglog-") as parent:
        copy = Path(parent).resolve() / directory.name
        download(storage, directory, copy)
        yield _findings(task, copy, schema, stores.tier)


def _findings(task: DirectoryTask, directory: Path, schema: pa.Schema, remote: KnowsTiered | None) -> pa.RecordBatch:
    rows = []
    for finding in verify(directory, remote=remote):
        at = finding.location
        row = {
            "topic": task.topic,
            "partition": task.partition,
            "file": f"{task.path}/{at.path}" if at.path else task.path,
            "position": at.position,
            "field": kafka_name(at.field),
            "severity": finding.severity.value,
            "requirement": finding.requirement,
            "expected": finding.expected,
            "found": str(finding.found),
            "message": finding.message,
            "count": finding.count,
        }
        rows.append(row)
    return rows_as_batch(rows, schema)


def rows_as_batch(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows to a batch with the schema's columns."""
    return pa.RecordBatch.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema)
