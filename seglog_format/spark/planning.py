"""The plan of a query from options and filters: ranges of segments, shared among tasks.

No log is read for it, only names, sizes and indexes, so ten thousand segments are planned in seconds.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from contextlib import closing, suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import checksum_is_valid, decompressed_bytes
from seglog_format.errors import FormatError, SeglogError, UsageError
from seglog_format.log.listing import SegmentFiles
from seglog_format.log.reading import is_older
from seglog_format.log.segment import LogSegment, offset_up_to_timestamp
from seglog_format.model import INT64_MAX, Frame, OffsetPosition
from seglog_format.spark.discovery import choose, find_replicas
from seglog_format.spark.filters import EVERYTHING, INT64_MIN, Narrowed
from seglog_format.spark.offsets import EARLIEST_OFFSET, Bounds, resolve_end, resolve_start
from seglog_format.spark.options import FAIL_FAST, IGNORE, LEFT_OUT
from seglog_format.spark.pieces import DirectoryTask, Piece, Task, opened_tier, remote_log

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_format.log.partition import Partition
    from seglog_format.spark.discovery import Replica
    from seglog_format.spark.offsets import TopicPartition
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import AnyTask
    from seglog_format.storage.log_storage import LogStorage

LOGGER: Final = logging.getLogger(__name__)

MIN_SPLIT: Final = 32 * 2**20
"""Default minimum bytes of a task, decompressed: starting one costs about as much as reading half of that."""
MAX_SPLIT: Final = 128 * 2**20
"""Default maximum, if there are at least `FEW_TASKS` tasks."""
FEW_TASKS: Final = 64
SAMPLED_SIZE: Final = 2**20
"""Minimum bytes of a segment whose first entry is decompressed to plan the others."""

MAX_TASKS: Final = 10_000
"""Default maximum number of tasks: Spark's driver keeps a record of each."""


def plan(options: ReadOptions, narrowed: Narrowed = EVERYTHING) -> list[AnyTask]:
    """Plan a query: of records and batches as `plan_records`, of other tables a task for each partition."""
    if options.table in {"records", "batches"}:
        return [*plan_records(options, narrowed)]
    if options.table == LEFT_OUT:
        return [*plan_records(options, narrowed), *_directories(options, narrowed)]
    return [
        DirectoryTask(replica.name, replica.topic, replica.partition, replica.topic_id)
        for replica in wanted_replicas(options, options.storage)
        if narrowed.wants(*replica.key)
    ]


def _directories(options: ReadOptions, narrowed: Narrowed) -> Iterator[DirectoryTask]:
    """Yield the partitions that a query of records reads, with its ranges of offsets."""
    for replica in wanted_replicas(options, options.storage):
        if narrowed.wants(*replica.key):
            with replica.open(options) as partition:
                bounds = bounds_of(partition, replica, options)
                first = max(bounds.start, narrowed.from_offset, partition.log_start_offset)
            end = INT64_MAX if bounds.end is None else bounds.end
            offsets = first, min(end, narrowed.to_offset)
            yield DirectoryTask(replica.name, *replica.key, replica.topic_id, offsets)


def plan_records(options: ReadOptions, narrowed: Narrowed = EVERYTHING) -> list[Task]:
    """Plan a read of records.

    Args:
        options: of the query.
        narrowed: the range that its filters leave.

    Raises:
        UsageError: a missing path, invalid offsets, lost data, or a topic created again.
        FormatError: damage prevents the lookup of a timestamp.
    """
    found = []
    for replica in wanted_replicas(options, options.storage):
        if narrowed.wants(*replica.key):
            with replica.open(options) as partition:
                bounds = bounds_of(partition, replica, options)
                found.append((replica, pieces_of(partition, replica, bounds, options, narrowed)))
    if options.is_committed_only and options.table != "batches":
        return [Task(tuple(pieces), replica.name) for replica, pieces in found if pieces]
    every = [(piece, replica.storage) for replica, pieces in found for piece in pieces]
    remote = [Task((piece,)) for piece, _ in every if piece.remote is not None]
    return remote + shared_out([each for each in every if each[0].remote is None], options)


def wanted_replicas(options: ReadOptions, settings: Mapping[str, str] | None = None) -> tuple[Replica, ...]:
    """Return the partition directories that a query reads.

    Args:
        options: of the query.
        settings: of the file systems of addresses; None to refuse addresses.

    Raises:
        UsageError: offsets are given for other partitions than these.
    """
    replicas = choose(find_replicas(options.paths, settings, opened_tier(options)), options)
    keys = {replica.key for replica in replicas}
    missing = sorted((options.assigned or frozenset()) - keys)
    missing_topics = sorted((options.topics or frozenset()) - {topic for topic, _ in keys})
    if missing or missing_topics:
        names = missing_topics or [f"{topic}-{partition}" for topic, partition in missing]
        msg = f"seglog: {', '.join(names[:5])} is not below {', '.join(options.paths)}"
        raise UsageError(msg)
    options.starting.check("the start", keys)
    options.ending.check("the end", keys)
    return replicas


def bounds_of(partition: Partition, replica: Replica, options: ReadOptions) -> Bounds:
    """Return the range of offsets to read of a partition, by the options.

    Raises:
        UsageError: an offset does not exist, and the options refuse that.
    """
    _require_whole(partition, replica, options)
    start = resolve_start(options.starting, partition, replica.key)
    end = resolve_end(options.ending, partition, replica.key)
    if options.starting.kind == "offsets":
        start = _present(f"{replica.name}: starting", start, partition, options)
    if end is not None and options.ending.kind == "offsets":
        end = _present(f"{replica.name}: ending", end, partition, options)
    return Bounds(start, end)


def _require_whole(partition: Partition, replica: Replica, options: ReadOptions) -> None:
    """Refuse to read only the local part of a tiered log as if it were all of the log.

    Raises:
        UsageError: a query from the start would leave records out, and the options refuse that.
    """
    tiered = partition.tiered_offsets if options.fail_on_data_loss else None
    starting = options.starting
    is_named = starting.kind == "offsets" and starting.values[replica.key] != EARLIEST_OFFSET
    if tiered is not None and starting.kind != "latest" and not is_named:
        msg = (
            f"seglog: {replica.name}: {tiered.first_offset} to {tiered.next_offset - 1} are only in the"
            " remote store; failOnDataLoss false reads the local records"
        )
        raise UsageError(msg)


def _present(what: str, offset: int, partition: Partition, options: ReadOptions) -> int:
    """Return the offset; if it does not exist and the options allow that, return the nearest one that does."""
    low, high = partition.log_start_offset, partition.log_end_offset
    if options.fail_on_data_loss and not low <= offset <= high:
        msg = (
            f"seglog: {what} offset {offset} is not there: the log has {low} to {high};"
            " failOnDataLoss false reads the records that are there"
        )
        raise UsageError(msg)
    return min(max(offset, low), high)


def pieces_of(
    partition: Partition, replica: Replica, bounds: Bounds, options: ReadOptions, narrowed: Narrowed = EVERYTHING
) -> list[Piece]:
    """Return one piece for each segment of a partition that may hold wanted records.

    Raises:
        ReadError: in mode ``failfast``: a log is no regular file.
    """
    _require_logs(partition, options)
    first = max(bounds.start, narrowed.from_offset, partition.log_start_offset)
    end = min(INT64_MAX if bounds.end is None else bounds.end, narrowed.to_offset)
    end = min(end, _too_recent_from(partition, options, narrowed))
    last = partition.segments[-1] if partition.segments else None
    if options.time_index == IGNORE:
        narrowed = replace(narrowed, from_timestamp_ms=INT64_MIN)
    pieces = []
    for segment in partition.segments:
        may_hold = segment.base_offset < end and segment.allowed.last >= first and first < end
        is_last = segment is last
        if may_hold and segment.size and (is_last or not _is_too_old(segment, narrowed)):
            whole = Piece(
                replica.topic,
                replica.partition,
                segment.path,
                segment.base_offset,
                last_allowed=segment.allowed.last,
                previous=segment.base_offset - 1,
                from_offset=first,
                to_offset=end,
                topic_id=replica.topic_id,
                is_last=is_last,
                limit=options.limit,
                remote=remote_log(segment, partition.listing.storage),
            )
            pieces.append(_bounded(whole, segment, narrowed))
    return pieces


def _require_logs(partition: Partition, options: ReadOptions) -> None:
    """Refuse logs that are no regular files, such as links that lead nowhere; or warn of them, as the mode says."""
    for error in partition.listing.blocked_logs if options.table != LEFT_OUT else ():
        if options.mode == FAIL_FAST:
            from seglog_format.spark.damage import ReadError, explained  # noqa: PLC0415 - brings Arrow

            raise ReadError(explained(error))
        LOGGER.warning("seglog: mode %s leaves out a log: %s", options.mode, error)


def _too_recent_from(partition: Partition, options: ReadOptions, narrowed: Narrowed) -> int:
    """Return the offset from which on all records are too recent, given the maximum lateness of records.

    Headers and indexes alone do not prove it: a later batch may hold an older record. But if a record is after the
    wanted time by more than the maximum lateness, all later records are too recent as well.
    """
    if options.max_lateness_ms is None or narrowed.to_timestamp_ms == INT64_MAX:
        return INT64_MAX
    found = None
    with suppress(FormatError):  # the task that reads the damage reports it, if the mode requires it
        found = partition.offset_for_timestamp(max(narrowed.to_timestamp_ms + options.max_lateness_ms + 1, 0))
    return INT64_MAX if found is None else found.offset


def _is_too_old(segment: LogSegment, narrowed: Narrowed) -> bool:
    return narrowed.from_timestamp_ms > INT64_MIN and is_older(segment, narrowed.from_timestamp_ms)


def _bounded(piece: Piece, segment: LogSegment, narrowed: Narrowed) -> Piece:
    """Trim a piece to the wanted offsets and to the first wanted time, as far as the indexes allow.

    The offset index is searched without a check of its order: the batch that an entry leads to is read, and its own
    offsets decide.
    """
    lowest = piece.from_offset
    if narrowed.from_timestamp_ms > INT64_MIN:
        lowest = max(lowest, offset_up_to_timestamp(segment, narrowed.from_timestamp_ms - 1)[0])
    is_whole = lowest <= segment.base_offset and piece.to_offset >= segment.allowed.last + 1
    index = None if is_whole else segment.offset_index  # most indexes need not be opened
    if index is None:
        return piece
    entries = index.raw_entries()
    number = bisect_right(entries, lowest, key=attrgetter("offset"))
    start = entry_start(segment, entries[number - 1]) if number and entries[number - 1].position > 0 else None
    if start is not None:
        piece = replace(piece, start=entries[number - 1].position, previous=start - 1)
    # An index entry names the last offset of the append at its position (the first, before 2.0). So wanted records may
    # follow its position, and the piece can end at the position of the next index entry only.
    number = bisect_left(entries, piece.to_offset, key=attrgetter("offset")) + 1
    if number < len(entries) and entries[number].position > piece.start:
        following = entry_start(segment, entries[number])
        if following is not None and (following >= piece.to_offset or following == segment.base_offset):
            piece = replace(piece, end=entries[number].position)
    return piece


def entry_start(segment: LogSegment, indexed: OffsetPosition) -> int | None:
    """Return the first offset of the entry at an indexed position; None if no matching entry is there.

    For a wrapper it returns the segment's base offset: its first offset is known only after decompression.
    """
    try:
        found = segment.frame_at(indexed.position)
    except FormatError:
        return None
    if not isinstance(found, Frame) or not checksum_is_valid(found):
        return None
    first = found.header.base_offset
    lowest = segment.base_offset if first is None else first
    return lowest if segment.base_offset <= lowest <= indexed.offset else None


def shared_out(pieces: Sequence[tuple[Piece, LogStorage]], options: ReadOptions) -> list[Task]:
    """Cut large pieces, and group small ones, so tasks are of about the same size.

    Args:
        pieces: each with the storage that holds its log.
        options: of the query.
    """
    stored = [size_of(piece, storage) for piece, storage in pieces]
    factors = [1.0] * len(pieces) if options.split_size else _factors(pieces, stored)
    total = int(sum(size * factor for size, factor in zip(stored, factors, strict=True)))
    target = options.split_size or max(MIN_SPLIT, min(MAX_SPLIT, total // FEW_TASKS), total // MAX_TASKS)
    if options.min_partitions is not None:
        target = min(target, total // (2 * options.min_partitions))  # tasks are up to twice as large
    target = max(target, 1)
    parts = [
        (part, int(part_size * factor))
        for (piece, storage), size, factor in zip(pieces, stored, factors, strict=True)
        for part, part_size in _sized(piece, storage, size, max(int(target / factor), 1))
    ]
    return [Task(tuple(each)) for each in _packed(parts, target)]


def _factors(pieces: Sequence[tuple[Piece, LogStorage]], sizes: Sequence[int]) -> list[float]:
    """Return how many times as large as its stored bytes each piece is when it is decompressed, about.

    One entry of each partition says it, of a local segment that is not small: to fetch one takes as long as a task.
    """
    found: dict[TopicPartition, float] = {}
    for (piece, storage), size in zip(pieces, sizes, strict=True):
        key = piece.topic, piece.partition
        if key not in found and storage.is_local and size >= SAMPLED_SIZE:
            with suppress(SeglogError), closing(piece.segment(storage)) as segment:
                found[key] = _factor(segment, piece.start)
    return [found.get((piece.topic, piece.partition), 1.0) for piece, _ in pieces]


def _factor(segment: LogSegment, position: int) -> float:
    frame = segment.frame_at(position)
    if not isinstance(frame, Frame):
        return 1.0
    content = decompressed_bytes(frame, limit=min(segment.limit, MAX_SPLIT)) or b""
    return max(len(content) / (frame.end - frame.position), 1.0)


def size_of(piece: Piece, storage: LogStorage) -> int:
    """Return the size of a piece."""
    end = piece.segment(storage).size if piece.end is None else piece.end
    return max(end - piece.start, 0)


def _sized(piece: Piece, storage: LogStorage, size: int, target: int) -> Iterator[tuple[Piece, int]]:
    """Yield the parts of a piece, with their sizes."""
    end = piece.start + size
    for part in _cut(piece, storage, size, target):
        yield part, (end if part.end is None else part.end) - part.start


def _cut(piece: Piece, storage: LogStorage, size: int, target: int) -> Iterator[Piece]:
    """Cut a piece into parts of at least a size, as far as the offset index knows where entries start."""
    if size < 2 * target:
        yield piece
        return
    path = piece.log.removesuffix(".log") + ".index"
    with _indexed(piece, path, storage) as segment:
        yield from _cut_at(piece, segment, size, target)


def _cut_at(piece: Piece, segment: LogSegment, size: int, target: int) -> Iterator[Piece]:
    entries = () if segment.offset_index is None else segment.offset_index.raw_entries()
    end = piece.start + size
    while True:
        number = bisect_left(entries, piece.start + target, key=attrgetter("position"))
        entry = entries[number] if number < len(entries) else None
        if entry is None or not piece.start < entry.position <= end - target // 2:
            break
        first = entry_start(segment, entry)
        if first is None:
            break
        is_known = first > segment.base_offset
        yield replace(piece, end=entry.position, last_allowed=first - 1 if is_known else piece.last_allowed)
        piece = replace(piece, start=entry.position, previous=first - 1)
    yield piece


def _indexed(piece: Piece, index: str, storage: LogStorage) -> LogSegment:
    files = SegmentFiles(piece.base_offset, Path(piece.log), offset_index=Path(index))
    return LogSegment(files, limit=piece.limit, storage=storage)


def _packed(parts: Iterable[tuple[Piece, int]], target: int) -> Iterator[list[Piece]]:
    packed: list[Piece] = []
    size = 0
    for piece, this in parts:
        if packed and size + this > target + target // 2:
            yield packed
            packed, size = [], 0
        packed.append(piece)
        size += this
    if packed:
        yield packed
