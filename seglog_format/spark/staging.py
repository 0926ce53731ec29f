"""Rows are written as batches into staged files on executors; the driver makes all of them segments, or none of them.

A manifest is written first, and removed at the end. Its steps can be repeated from any point at which a driver
died: `finish_commits` repeats them, and so does the next write. A batch's checksum does not cover offsets and leader
epochs, so they are set in place; to set them again changes nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import stat
import struct
import time
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, encode_leader_epoch_checkpoint
from seglog_format.codec.encode import encode_columns
from seglog_format.codec.framing import walk
from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.directory_lock import DirectoryLock
from seglog_format.log.index_file import IndexedRow, build_indexes, encode_offset_index, encode_time_index
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.model import ENTRY_PREFIX_SIZE, GREATEST_OFFSET, INT32_MAX, NO_TIMESTAMP, EpochStart
from seglog_format.names import FileKind, partition_directory_name, require_written_directory, segment_file_name
from seglog_format.spark.source_parts import NO_PARTITION
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.byte_source import open_bytes, read_whole
from seglog_format.storage.files import LOCAL_FILES, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_format.spark.source_parts import WriteOptions


# -- the partition of a row that names none, as Kafka's producer chooses it when the number of partitions is known -----


SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
UINT32: Final = 0xFFFFFFFF
INT32: Final = 0x7FFFFFFF
WORD: Final = 4


@dataclass
class Spreader:
    """Chooses partitions for the rows of one task.

    A row with a key gets the partition that Kafka's producer gives to the key. Rows without a key fill one partition
    after the other, a batch at a time; the producer does so, too, in an order that differs from run to run.

    Attributes:
        options: of the write.
        first: number of the task; tasks begin with different partitions.
    """

    options: WriteOptions
    first: int = 0
    _current: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By topic, the partition of the next row without a key, and the bytes given to it so far."""

    def partition_of(self, topic: str, named: int | None, key: bytes | None, size: int) -> int:
        """Return the partition of a row.

        Args:
            topic: of the row.
            named: the partition that the row names; None if it names none.
            key: of the row.
            size: approximate bytes of the row.

        Raises:
            UsageError: the row names no partition and their number is not known, or a partition beyond that number.
        """
        count = self.options.partitions
        if named is not None:
            if count is not None and named >= count:
                msg = f"seglog: a row of {topic} names partition {named}, but the option partitions is {count}"
                raise UsageError(msg)
            return named
        if count is None:
            msg = f"seglog: a row of {topic} has no partition: {NO_PARTITION}"
            raise UsageError(msg)
        return self._next(topic, size, count) if key is None else partition_for_key(key, count)

    def _next(self, topic: str, size: int, count: int) -> int:
        number, given = self._current.get(topic, (self.first % count, 0))
        if given and given + size > self.options.batch_size:
            number, given = (number + 1) % count, 0
        self._current[topic] = number, given + size
        return number


def partition_for_key(key: bytes, count: int) -> int:
    """Return the partition of a key among a number of partitions, as Kafka's `BuiltInPartitioner` does."""
    return (murmur2(key) & INT32) % count


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of bytes with the seed that Kafka uses, as a number without sign."""
    found, whole = SEED ^ len(data), len(data) // WORD * WORD
    for start in range(0, whole, WORD):
        word = int.from_bytes(data[start : start + WORD], "little") * MULTIPLIER & UINT32
        word = (word ^ word >> 24) * MULTIPLIER & UINT32
        found = (found * MULTIPLIER & UINT32) ^ word
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & UINT32
    found = (found ^ found >> 13) * MULTIPLIER & UINT32
    return found ^ found >> 15


# -- on an executor ----------------------------------------------------------------------------------------------------


RECORD_OVERHEAD: Final = 10
"""Approximate bytes of a record besides key, value and headers."""
BUFFER_SIZE: Final = 32 * 2**20
"""Approximate bytes of rows that are encoded together."""
BATCH_START: Final = Struct(">qi11xi")
"""Base offset, length and last offset delta of a batch."""


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
    """A staged file that is being written.

    The file is closed between writes: one task may write more partitions than a process may have open files.
    """

    path: Path | None = None
    size: int = 0
    first: int = 0
    next_offset: int = 0


class Stager:
    """Writes the rows of one attempt of one task into a directory of its own.

    Args:
        directory: of the attempt; created for the first row, and not again after a commit has removed it.
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
        self._rows: list[pa.RecordBatch] = []
        self._size = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows.

        Raises:
            UsageError: a row without topic, with a topic or partition that no directory can have, without a partition
                if it has an offset or the number of partitions is not known, or with an offset that is not above the
                one before it. `finish` raises it as well.
        """
        if not len(batch):
            return
        self._rows.append(_placed(batch, self._options, self._spreader))
        if len(self._rows) == 1 and not self._file_count:
            self._directory.mkdir(parents=True, exist_ok=True)
        self._size += batch.nbytes
        if self._size >= BUFFER_SIZE:
            self._write_rows()

    def _write_rows(self) -> None:
        """Encode all rows that were added, partition by partition."""
        if not self._rows:
            return
        table = pa.Table.from_batches(self._rows).combine_chunks()
        self._rows, self._size = [], 0
        topics = table.column("topic").combine_chunks().dictionary_encode()
        partitions = table.column("partition").to_numpy()
        order = np.lexsort((partitions, topics.indices.to_numpy()))  # stable: rows of a partition keep their order
        ordered = table if (order[1:] > order[:-1]).all() else table.take(order)
        topic_numbers, partition_numbers = topics.indices.to_numpy()[order], partitions[order]
        changes = np.flatnonzero((np.diff(topic_numbers) != 0) | (np.diff(partition_numbers) != 0)) + 1
        for start, end in zip([0, *changes], [*changes, len(order)], strict=True):
            key = topics.dictionary[int(topic_numbers[start])].as_py(), int(partition_numbers[start])
            self._write(key, ordered.slice(start, end - start).drop(["topic", "partition"]))

    def _write(self, key: tuple[str, int], rows: pa.Table) -> None:
        """Write rows of one partition as batches; start a new file if a segment would become too large."""
        of = self._open[key]
        if "offset" in rows.column_names:
            _check_offsets(key, rows.column("offset").to_numpy(), of.next_offset)
        encoder = encode_columns(
            rows,
            base_offset=of.next_offset,
            batch_size=self._options.batch_size,
            codec=self._options.codec,
            partition_leader_epoch=0,
        )
        for data in encoder:
            written = position = 0
            while position < len(data):
                first, length, delta = BATCH_START.unpack_from(data, position)
                end = position + ENTRY_PREFIX_SIZE + length
                size = of.size + end - written
                if of.path is not None and (size > self._options.segment_size or first + delta - of.first > INT32_MAX):
                    _append(of, data[written:position])
                    self._finish(key, of)
                    written = position
                if of.path is None:
                    self._begin(of, first)
                of.next_offset, position = first + delta + 1, end
            _append(of, data[written:])

    def _begin(self, of: _Open, first: int) -> None:
        of.path, of.size, of.first = self._directory / f"{self._file_count}.batches", 0, first
        of.path.touch(exist_ok=False)
        self._file_count += 1

    def _finish(self, key: tuple[str, int], of: _Open) -> None:
        assert of.path is not None
        with of.path.open("ab") as file:
            os.fsync(file.fileno())
        self._staged.append(Staged(*key, str(of.path), of.first, of.next_offset - 1))
        of.path = None

    def finish(self) -> tuple[Staged, ...]:
        """Write waiting records, and flush all files to disk.

        Raises:
            UsageError: as `add`.
        """
        self._write_rows()
        for key, of in self._open.items():
            if of.path is not None:
                self._finish(key, of)
        return tuple(self._staged)


def _append(of: _Open, data: bytes) -> None:
    if of.path is not None and data:
        with of.path.open("ab") as file:
            file.write(data)
        of.size += len(data)


def _check_offsets(key: tuple[str, int], offsets: np.ndarray[Any, np.dtype[np.int64]], lowest: int) -> None:
    previous = np.concatenate([[lowest - 1], offsets[:-1]])
    wrong = np.flatnonzero((offsets <= previous) | (offsets < 0))
    if len(wrong):
        msg = (
            f"seglog: {key[0]}-{key[1]}: offset {offsets[wrong[0]]} comes after {previous[wrong[0]]}: write"
            " seglog_format.spark.prepared(frame), which sorts rows by their offsets"
        )
        raise UsageError(msg)


def _placed(batch: pa.RecordBatch, options: WriteOptions, spreader: Spreader) -> pa.RecordBatch:
    """Return rows in the form of `encode_columns`, each with its topic and partition."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    topics = columns.get("topic", pa.nulls(len(batch), pa.string()))
    topics = topics if options.topic is None else topics.fill_null(options.topic)
    if topics.null_count:
        msg = "seglog: a row has no topic: add a column topic, or give the option topic"
        raise UsageError(msg)
    partitions = columns.get("partition", pa.nulls(len(batch), pa.int32()))
    if "offset" in columns:
        for name, column in (("partition", partitions), ("offset", columns["offset"])):
            if column.null_count:
                topic = topics[column.is_null().to_pylist().index(True)]
                msg = f"seglog: a row of {topic} has no {name}, though rows have offsets"
                raise UsageError(msg)
    if partitions.null_count or options.partitions is not None:
        partitions = pa.array(_spread(columns, topics, partitions, spreader), pa.int32())
    # A copied record without a timestamp keeps none.
    missing_ms = NO_TIMESTAMP if "offset" in columns else int(time.time() * 1000)
    times = _milliseconds(columns["timestamp"], missing_ms) if "timestamp" in columns else [missing_ms] * len(batch)
    placed = columns | {"topic": topics, "partition": partitions, "timestamp": pa.array(times, pa.int64())}
    named = pa.table({"topic": topics, "partition": partitions}).group_by(["topic", "partition"]).aggregate([])
    for row in named.to_pylist():
        partition_directory_name(row["topic"], row["partition"])
    return pa.RecordBatch.from_pydict(placed)


def _spread(columns: Mapping[str, pa.Array], topics: pa.Array, named: pa.Array, spreader: Spreader) -> Iterator[int]:
    """Yield the partition of each row."""
    keys, values, headers = (columns.get(key, pa.nulls(len(topics))).to_pylist() for key in ("key", "value", "headers"))
    for row, (topic, number) in enumerate(zip(topics.to_pylist(), named.to_pylist(), strict=True)):
        key = _bytes(keys[row])
        pairs = sum(len(each["key"] or "") + len(each["value"] or b"") + 2 for each in headers[row] or ())
        size = len(key or b"") + len(_bytes(values[row]) or b"") + pairs + RECORD_OVERHEAD
        yield spreader.partition_of(topic, number, key, size)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _milliseconds(times: pa.Array, missing_ms: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return milliseconds, rounded down; Spark counts microseconds.

    Raises:
        UsageError: a time is before 1970, where -1 would be a record without a time.
    """
    micro = times.cast("int64")
    is_before = pc.less(micro, 0)
    if pc.any(is_before).as_py():
        found = times.filter(is_before)[0]
        msg = f"seglog: a row has the time {found}: the writer takes times from 1970 on; a null timestamp means none"
        raise UsageError(msg)
    return np.where(times.is_null().to_numpy(zero_copy_only=False), missing_ms, micro.fill_null(0).to_numpy() // 1000)


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


LOGGER: Final = logging.getLogger(__name__)

BASE_OFFSET: Final = struct.Struct(">q")
LEADER_EPOCH: Final = struct.Struct(">i")
EPOCH_POSITION: Final = 12


def commit(root: Path, job: str, staged: Sequence[Staged], *, keeps_offsets: bool, interval_bytes: int) -> int:
    """Turn staged files into segments of a log directory.

    Args:
        root: the log directory.
        job: unique name of this write.
        staged: in the order in which they are to be appended.
        keeps_offsets: whether the files already have their final offsets.
        interval_bytes: bytes between index entries.

    Returns:
        The number of new segments.

    Raises:
        UsageError: a broker or another writer holds the directory, a name is not valid for a partition, the log has
            these offsets already, or a staged file is gone. Nothing has changed.
    """
    root.mkdir(parents=True, exist_ok=True)
    with closing(DirectoryLock(root)):
        _finish_all(root)
        manifest = Manifest(job, interval_bytes, tuple(_placements(root, staged, keeps_offsets)))
        replace_file(LOCAL_FILES, manifest_path(root, job), manifest.encoded())
        _apply(root, manifest)
        _remove_manifest(root, job)
    if (root / STAGING).exists():
        LOGGER.warning(
            "seglog: %s has files of other writes, and no broker starts from %s with them: if none of these writes is"
            " running, seglog_format.spark.finish_commits removes them",
            *(root / STAGING, root),
        )
    with suppress(PermissionError):  # without permission to read it, this user has not made the directory
        LOCAL_FILES.fsync_directory(root.parent)
    return len(staged)


def finish_commits(path: str | os.PathLike[str]) -> int:
    """Finish the writes whose driver died during the commit, and remove the files of those that had not come to it.

    A write that is still running then fails, and changes nothing.

    Args:
        path: of a log directory.

    Returns:
        The number of finished writes.

    Raises:
        UsageError: a broker or another writer holds the directory, or a manifest in it was not made by a writer.
    """
    root = Path(path)
    with closing(DirectoryLock(root)):
        finished = _finish_all(root)
        shutil.rmtree(root / STAGING, ignore_errors=True)
        return finished


def abort(root: Path, job: str) -> None:
    """Remove the files that a write has staged."""
    shutil.rmtree(staging_path(root, job), ignore_errors=True)
    _remove_if_empty(root / STAGING)


def _finish_all(root: Path) -> int:
    found = sorted(root.glob(f"{MANIFEST}*{SUFFIX}"))
    for path in found:
        manifest = read_manifest(path)
        _apply(root, manifest)
        _remove_manifest(root, manifest.job)
    return len(found)


def _remove_manifest(root: Path, job: str) -> None:
    abort(root, job)
    manifest_path(root, job).unlink()
    LOCAL_FILES.fsync_directory(root)


def _remove_if_empty(directory: Path) -> None:
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def _placements(root: Path, staged: Iterable[Staged], keeps_offsets: bool) -> Iterator[Placement]:  # noqa: FBT001
    """Yield the target of each file, with its offsets."""
    ends: dict[Path, int] = {}
    for each in sorted(staged, key=lambda one: (one.topic, one.partition, one.first if keeps_offsets else 0)):
        directory = root / partition_directory_name(each.topic, each.partition)
        end = ends[directory] if directory in ends else _log_end(directory)
        if keeps_offsets and each.first < end:
            msg = (
                f"seglog: {directory.name} has offsets up to {end - 1}, and rows bring {each.first} again; rows of"
                " one partition have to be in one task: write seglog_format.spark.prepared(frame)"
            )
            raise UsageError(msg)
        base = each.first if keeps_offsets else end
        last = base + each.last - each.first
        if last > GREATEST_OFFSET:
            msg = f"seglog: {directory.name}: offset {last} is above {GREATEST_OFFSET} (SEG-LOG-013)"
            raise UsageError(msg)
        _require_free(directory / segment_file_name(base, FileKind.LOG))
        if not Path(each.path).is_file():
            msg = f"seglog: {each.path} is gone: finish_commits, or someone, removed the files of a running write"
            raise UsageError(msg)
        ends[directory] = last + 1
        file = Path(each.path).relative_to(root).as_posix()
        yield Placement(directory.name, file, base, keeps_offsets)


def _require_free(path: Path) -> None:
    """Check that no segment has this name, except for an empty log, which a new partition has."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        if found.st_size or not stat.S_ISREG(found.st_mode):
            msg = f"seglog: {path} is there already, and is not replaced: does the log need recovery?"
            raise UsageError(msg)


def _log_end(directory: Path) -> int:
    if not directory.is_dir():
        return 0
    with Partition(list_partition(directory)) as partition:
        return partition.log_end_offset


def _apply(root: Path, manifest: Manifest) -> None:
    """Carry out a manifest; steps done before are skipped."""
    with opened_for_change(root, root, LOCAL_FILES):
        for each in manifest.segments:
            source, directory = root / each.file, root / each.directory
            if source.exists():  # else an earlier run has moved it
                directory.mkdir(exist_ok=True)
                _publish(source, directory, each, manifest.interval)
                LOCAL_FILES.fsync_directory(directory)
        LOCAL_FILES.fsync_directory(root)


def _publish(source: Path, directory: Path, placement: Placement, interval_bytes: int) -> None:
    """Turn a staged file into a segment; if the file has both names already, remove the first."""
    if not source.resolve().is_relative_to(directory.parent.resolve() / STAGING):
        msg = f"seglog: {source} is a link that leads out of {STAGING}"
        raise UsageError(msg)
    base = placement.base
    log = directory / segment_file_name(base, FileKind.LOG)
    if log.exists() and log.samefile(source):
        source.unlink()
        return
    _require_free(log)
    epoch = _leader_epoch(directory, base)
    rows = _numbered(source, None if placement.keeps else base, epoch)
    built = build_indexes(rows, interval_bytes=interval_bytes)
    indexes = {
        FileKind.OFFSET_INDEX: encode_offset_index(built.offset_entries, base),
        FileKind.TIME_INDEX: encode_time_index(built.time_entries, base),
    }
    for kind, data in indexes.items():
        replace_file(LOCAL_FILES, directory / segment_file_name(base, kind), data)
    log.unlink(missing_ok=True)  # an empty log
    LOCAL_FILES.publish(source, log)


def _leader_epoch(directory: Path, base: int) -> int:
    """Return the latest leader epoch of a partition; 0 if it has none."""
    path = directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        entries = decode_leader_epoch_checkpoint(read_whole(path)).entries
    except SeglogError:
        entries = ()
    if entries:
        return entries[-1].epoch
    replace_file(LOCAL_FILES, path, encode_leader_epoch_checkpoint([EpochStart(0, base)]))
    return 0


def _numbered(path: Path, base: int | None, epoch: int) -> list[IndexedRow]:
    """Set offsets, unless they are kept, and leader epochs of a file's batches; return the index entries."""
    rows = []
    with closing(LOCAL_FILES.open_append(path)) as file, open_bytes(path) as source:
        for frame in walk(source, path=str(path)):
            header = frame.header
            first = header.base_offset if base is None else base
            assert first is not None
            last = first + header.last_offset - (header.base_offset or 0)
            rows.append(IndexedRow(frame.position, frame.end - frame.position, first, last, header.max_timestamp_ms))
            file.write_at(frame.position, BASE_OFFSET.pack(first))
            file.write_at(frame.position + EPOCH_POSITION, LEADER_EPOCH.pack(epoch))
            base = None if base is None else last + 1
        file.fsync()
    return rows
