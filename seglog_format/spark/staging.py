"""On an executor: rows are written as batches into staged files; the driver sets final offsets when it commits."""

from __future__ import annotations

import json
import os
import re
import time
from collections import defaultdict
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.checksum import crc32c
from seglog_format.codec.compress import compress
from seglog_format.codec.encode import codec_named
from seglog_format.errors import UsageError
from seglog_format.model import ENTRY_PREFIX_SIZE, INT32_MAX, NO_TIMESTAMP, RecordBatchHeader
from seglog_format.names import FileKind, partition_directory_name, require_written_directory, segment_file_name
from seglog_format.record_model import Record
from seglog_format.schema.fixed_fields import ATTRIBUTES_POSITION, RECORD_BATCH_HEADER
from seglog_format.spark.partitioning import Spreader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pyarrow as pa

    from seglog_format.record_model import RecordBatch
    from seglog_format.spark.write_options import WriteOptions


RECORD_OVERHEAD: Final = 10
"""Approximate bytes of a record besides key, value and headers."""


@dataclass(frozen=True, slots=True)
class Staged:
    """A file of batches that will become a segment.

    Attributes:
        topic, partition: of the segment.
        path: of the file.
        first, last: offsets of the first and the last record: final if the rows have offsets, else counted from 0.
    """

    topic: str
    partition: int
    path: str
    first: int
    last: int


@dataclass
class _Open:
    """A staged file that is being written, and the records to write next.

    The file is closed between its batches: one task may write more partitions than a process may have open files.
    """

    path: Path | None = None
    size: int = 0
    first: int = 0
    next_offset: int = 0
    records: list[Record] = field(default_factory=list)
    waiting: int = 0


class Stager:
    """Writes the rows of one attempt of one task into a directory of its own.

    Args:
        directory: of the attempt; created at first use.
        options: of the write.
        task: its number.
    """

    def __init__(self, directory: Path, options: WriteOptions, task: int = 0) -> None:
        self._directory = directory
        self._options = options
        self._open: defaultdict[tuple[str, int], _Open] = defaultdict(_Open)
        self._staged: list[Staged] = []
        self._spreader = Spreader(options, task)
        self._file_count = 0
        self._has_offsets = False

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows.

        Raises:
            UsageError: a row without topic, with a topic or partition that no directory can have, without a partition
                if it has an offset or the number of partitions is not known, or with an offset that is not above the
                one before it.
        """
        self._has_offsets = "offset" in batch.schema.names
        for (topic, named), offset, record in _rows(batch, self._options):
            if topic is None:
                msg = "seglog: a row has no topic: add a column topic, or give the option topic"
                raise UsageError(msg)
            if self._has_offsets and (named is None or offset is None):
                missing = "partition" if named is None else "offset"
                msg = f"seglog: a row of {topic} has no {missing}, though rows have offsets"
                raise UsageError(msg)
            size = _size_of(record)
            partition = self._spreader.partition_of(topic, named, record.key, size)
            self._add(topic, partition, record if offset is None else replace(record, offset=offset), size)

    def _add(self, topic: str, partition: int, record: Record, size: int) -> None:
        if (topic, partition) not in self._open:
            partition_directory_name(topic, partition)
        of = self._open[topic, partition]
        if not self._has_offsets:
            record = replace(record, offset=of.next_offset)
        elif record.offset < of.next_offset or record.offset < 0:
            msg = (
                f"seglog: {topic}-{partition}: offset {record.offset} comes after {of.next_offset - 1}: write"
                " seglog_format.spark.prepared(frame), which sorts rows by their offsets"
            )
            raise UsageError(msg)
        starts_again = of.records and record.offset - of.records[0].offset > INT32_MAX
        if of.records and (of.waiting + size > self._options.batch_size or starts_again):
            self._write(topic, partition, of)
        of.records.append(record)
        of.waiting += size
        of.next_offset = record.offset + 1

    def _write(self, topic: str, partition: int, of: _Open) -> None:
        """Write waiting records as a batch; start a new file if a segment would become too large."""
        first, last = of.records[0].offset, of.records[-1].offset
        codec = self._options.codec
        batch = build_batch(
            of.records, base_offset=first, codec=codec, partition_leader_epoch=0, keeps_offsets=True
        )  # fmt: skip
        data = encoded(batch)
        if of.path is not None and (of.size + len(data) > self._options.segment_size or last - of.first > INT32_MAX):
            self._finish(topic, partition, of, first)
        if of.path is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            of.path, of.size, of.first = self._directory / f"{self._file_count}.batches", 0, first
            of.path.touch(exist_ok=False)
            self._file_count += 1
        with of.path.open("ab") as file:
            file.write(data)
        of.size += len(data)
        of.records, of.waiting = [], 0

    def _finish(self, topic: str, partition: int, of: _Open, next_offset: int) -> None:
        assert of.path is not None
        with of.path.open("ab") as file:
            os.fsync(file.fileno())
        self._staged.append(Staged(topic, partition, str(of.path), of.first, next_offset - 1))
        of.path = None

    def finish(self) -> tuple[Staged, ...]:
        """Write waiting records, and flush all files to disk."""
        for (topic, partition), of in self._open.items():
            if of.records:
                self._write(topic, partition, of)
            if of.path is not None:
                self._finish(topic, partition, of, of.next_offset)
        return tuple(self._staged)


def _size_of(record: Record) -> int:
    headers = sum(len(header.key) + len(header.value or b"") + 2 for header in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers + RECORD_OVERHEAD


def _rows(batch: pa.RecordBatch, options: WriteOptions) -> Iterator[tuple[tuple[Any, Any], int | None, Record]]:
    """Yield topic and partition as the row names them, offset (if the rows have one), and record of each row."""
    count, names = len(batch), batch.schema.names
    columns = {name: batch.column(name).to_pylist() for name in names if name != "timestamp"}
    now_ms = int(time.time() * 1000)
    missing_ms = NO_TIMESTAMP if "offset" in names else now_ms  # a copied record without a timestamp keeps none
    times = _milliseconds(batch.column("timestamp"), missing_ms) if "timestamp" in names else [now_ms] * count
    nothing: list[Any] = [None] * count
    topics = columns.get("topic", [options.topic] * count)
    numbers, offsets = columns.get("partition", nothing), columns.get("offset", nothing)
    keys, headers = columns.get("key", nothing), columns.get("headers", nothing)
    for row, value in enumerate(columns["value"]):
        pairs = [((each["key"] or "").encode(), each["value"]) for each in headers[row] or ()]
        record = new_record(key=_bytes(keys[row]), value=_bytes(value), timestamp_ms=times[row], headers=pairs)
        topic = topics[row] if topics[row] is not None else options.topic
        yield (topic, numbers[row]), offsets[row], record


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _milliseconds(times: pa.Array, missing_ms: int) -> list[int]:
    micro = times.cast("int64").to_pylist()  # Spark counts microseconds
    return [missing_ms if each is None else each // 1000 for each in micro]


def encoded(batch: RecordBatch) -> bytes:
    """Encode a batch of magic 2; equal to `encode_batch`, which encodes each record by the schema."""
    section = bytearray()
    for record in batch.records:
        assert isinstance(record, Record)
        put_record(section, record)
    assert isinstance(batch.header, RecordBatchHeader)
    stored = compress(codec_named(batch.header.codec_id), bytes(section), magic=batch.header.magic)
    size = RECORD_BATCH_HEADER.size + len(stored) - ENTRY_PREFIX_SIZE
    header = replace(batch.header, batch_length=size)
    unsealed: bytes = RECORD_BATCH_HEADER.pack(*astuple(header)) + stored
    crc = crc32c(unsealed[ATTRIBUTES_POSITION:])
    sealed: bytes = RECORD_BATCH_HEADER.pack(*astuple(replace(header, crc=crc))) + stored
    return sealed


def put_record(section: bytearray, record: Record) -> None:
    """Append one record."""
    body = bytearray(b"\0")
    put_varint(body, record.timestamp_delta)
    put_varint(body, record.offset_delta)
    put_bytes(body, record.key)
    put_bytes(body, record.value)
    put_varint(body, len(record.headers))
    for header in record.headers:
        put_bytes(body, header.key)
        put_bytes(body, header.value)
    put_varint(section, len(body))
    section += body


def put_bytes(target: bytearray, data: bytes | None) -> None:
    """Append a size and bytes; -1 for null."""
    if data is None:
        target.append(1)
        return
    put_varint(target, len(data))
    target += data


def put_varint(target: bytearray, value: int) -> None:
    """Append a zigzag varint."""
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    while zigzag > 0x7F:  # noqa: PLR2004 - seven bits to a byte
        target.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    target.append(zigzag)


# -- the manifest: the changes of a write, stored in the log directory until they are done -----------------------------


STAGING: Final = "_seglog_staging"
MANIFEST: Final = "_seglog_commit."
SUFFIX: Final = ".json"
_JOB = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class Placement:
    """A staged file, and the segment that it becomes.

    Attributes:
        directory: name of the partition directory.
        file: path of the staged file below the log directory, with slashes.
        base: base offset of the segment.
        keeps: whether the file already has its final offsets.
    """

    directory: str
    file: str
    base: int
    keeps: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """The changes of a write.

    Attributes:
        job: its name.
        interval: bytes between index entries.
        segments: the new segments.
    """

    job: str
    interval: int
    segments: tuple[Placement, ...]

    def encoded(self) -> bytes:
        """Encode it as JSON."""
        return json.dumps(asdict(self)).encode()


def staging_path(root: Path, job: str) -> Path:
    """Return the directory where a write stages its files.

    Raises:
        UsageError: the job's name could lead out of the log directory.
    """
    return root / STAGING / _checked_job(job)


def manifest_path(root: Path, job: str) -> Path:
    """Return the path of a write's manifest.

    Raises:
        UsageError: the job's name could lead out of the log directory.
    """
    return root / f"{MANIFEST}{_checked_job(job)}{SUFFIX}"


def read_manifest(path: Path) -> Manifest:
    """Read a manifest and check every name in it.

    Raises:
        UsageError: it is no manifest, or a name in it leads out of its directory.
    """
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")), path)
    except (ValueError, TypeError, KeyError, RecursionError, UsageError) as error:
        msg = f"seglog: {path} is no manifest of a write: {error!r}: remove it if it is not yours"
        raise UsageError(msg) from error


def _parsed(values: Mapping[str, Any], path: Path) -> Manifest:
    job = _checked_job(values["job"])
    if manifest_path(path.parent, job) != path:
        msg = f"job {job} has another manifest"
        raise UsageError(msg)
    return Manifest(job, int(values["interval"]), tuple(_placement(each, job) for each in values["segments"]))


def _placement(values: Mapping[str, Any], job: str) -> Placement:
    placement = Placement(
        str(values["directory"]), str(values["file"]), int(values["base"]), keeps=bool(values["keeps"])
    )
    require_written_directory(placement.directory)
    segment_file_name(placement.base, FileKind.LOG)
    parts = PurePosixPath(placement.file).parts
    if parts[:2] != (STAGING, job) or ".." in parts or "\0" in placement.file or "\\" in placement.file:
        msg = f"{placement.file!r} is no staged file"
        raise UsageError(msg)
    return placement


def _checked_job(job: object) -> str:
    if not isinstance(job, str) or not _JOB.fullmatch(job):
        msg = f"{job!r} is no name of a write"
        raise UsageError(msg)
    return job
