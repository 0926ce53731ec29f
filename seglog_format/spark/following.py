"""The steps of a stream over growing logs: the offsets from which and up to which each step reads.

Offsets are those of Spark's Kafka connector: for each partition, the next offset to read. A step ends with a whole
entry that has a right checksum, so an entry that a broker is just writing is left for the next step.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import FormatError, UsageError
from seglog_format.spark.offsets import Bounds, resolve_start
from seglog_format.spark.pieces import Task
from seglog_format.spark.planning import pieces_of, shared_out, wanted_replicas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.log.partition import Partition
    from seglog_format.log.segment import LogSegment
    from seglog_format.spark.discovery import Replica
    from seglog_format.spark.offsets import TopicPartition
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import Piece

LOGGER: Final = logging.getLogger(__name__)

Offsets: TypeAlias = "dict[TopicPartition, int]"


class DataLossError(UsageError):
    """Offsets that a stream has to read next no longer exist."""


class Follower:
    """Finds the offsets that a stream can read next, and those that were lost.

    Attributes:
        options: options of the stream.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def initial(self) -> Offsets:
        """Return the offsets at which a new stream starts.

        Raises:
            UsageError: as for a batch query.
        """
        found = {}
        for replica in wanted_replicas(self.options):
            with replica.open(self.options) as partition:
                if self.options.starting.kind == "latest":
                    found[replica.key] = self._end(partition)
                else:
                    found[replica.key] = resolve_start(self.options.starting, partition, replica.key)
        return found

    def latest(self) -> Offsets:
        """Return the present end of each log."""
        found = {}
        for replica in wanted_replicas(self._unbounded):
            with replica.open(self.options) as partition:
                found[replica.key] = self._end(partition)
        return found

    @property
    def _unbounded(self) -> ReadOptions:
        """The options without a start: a start would have to name every partition, even new ones."""
        return replace(self.options, starting=type(self.options.starting)("earliest"))

    def _end(self, partition: Partition) -> int:
        if self.options.is_committed_only:
            return partition.last_stable_offset
        return max(written_up_to(partition), partition.log_start_offset)

    def next(
        self, start: Mapping[TopicPartition, int], latest: Offsets, *, rows: int | None = None, size: int | None = None
    ) -> Offsets:
        """Return the offsets at which the next step ends.

        Args:
            start: offsets at which it starts; a partition without one is new, and read from its beginning.
            latest: offsets at which the logs end.
            rows: maximum number of offsets to read, shared in proportion to the rest of each partition.
            size: the same in bytes.

        Raises:
            DataLossError: a log ends before its start, or does not exist any more, and the options refuse that.
        """
        self._check(start, latest)
        ends = {**start, **latest}
        lowest = self._lowest(start, latest)
        lag = {key: max(ends[key] - lowest[key], 0) for key in ends}
        if rows is not None and (total := sum(lag.values())) > rows:
            return {key: lowest[key] + -(-each * rows // total) if each else ends[key] for key, each in lag.items()}
        if size is not None:
            return self._within(size, lowest, ends, lag)
        return ends

    def _lowest(self, start: Mapping[TopicPartition, int], latest: Offsets) -> Offsets:
        """Return the offset from which each partition is read."""
        new = latest.keys() - start.keys()
        lowest = dict(start)
        for replica in wanted_replicas(self._unbounded) if new else ():
            if replica.key in new:
                with replica.open(self.options) as partition:
                    lowest[replica.key] = partition.log_start_offset
        return lowest

    def _check(self, start: Mapping[TopicPartition, int], latest: Offsets) -> None:
        for (topic, number), offset in sorted(start.items()):
            end = latest.get((topic, number))
            if end is None:
                self._lost(f"{topic}-{number} does not exist any more")
            elif end < offset:
                self._lost(f"{topic}-{number} was cut back: it ends at offset {end}, and {offset} was to be read next")

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            msg = f"seglog: {what}; failOnDataLoss false continues with the records that are left"
            raise DataLossError(msg)
        LOGGER.warning("seglog: %s: records may be lost", what)

    def _within(self, size: int, lowest: Offsets, ends: Offsets, lag: Offsets) -> Offsets:
        """Return the ends of a step of `size` bytes, shared among partitions in proportion to offsets."""
        total, found = sum(lag.values()), dict(ends)
        for replica in wanted_replicas(self._unbounded):
            key = replica.key
            if lag.get(key):
                with replica.open(self.options) as partition:
                    share = max(size * lag[key] // total, 1)
                    found[key] = min(ends[key], offset_after(partition, lowest[key], share))
        return found

    def tasks(self, start: Mapping[TopicPartition, int], end: Offsets) -> list[Task]:
        """Return the tasks of a step; the same for the same offsets, also after a restart.

        Raises:
            DataLossError: some of these offsets no longer exist, and the options refuse that.
        """
        planned: list[tuple[Replica, list[Piece]]] = []
        replicas = {replica.key: replica for replica in wanted_replicas(self._unbounded)}
        for key, stop in sorted(end.items()):
            replica = replicas.get(key)
            if replica is None:
                if stop > start.get(key, 0):
                    self._lost(f"{key[0]}-{key[1]} does not exist any more")
                continue
            with replica.open(self.options) as partition:
                lowest = partition.log_start_offset
                if start.get(key, lowest) < min(lowest, stop):
                    self._lost(f"{key[0]}-{key[1]} starts at offset {lowest}, and {start[key]} was to be read next")
                bounds = Bounds(max(start.get(key, lowest), lowest), stop)
                pieces = pieces_of(partition, replica, bounds, self.options)
                planned.append((replica, _that_reach(pieces)))
        if self.options.is_committed_only:
            return [Task(tuple(pieces), replica.name) for replica, pieces in planned if pieces]
        return shared_out([(piece, replica.storage) for replica, pieces in planned for piece in pieces], self.options)


def _that_reach(pieces: Iterable[Piece]) -> list[Piece]:
    """Mark pieces as having to reach their end, so a log that is truncated meanwhile is noticed when it is read."""
    return [replace(piece, has_to_reach=piece.is_last) for piece in pieces]


def written_up_to(partition: Partition) -> int:
    """Return the offset after the last whole entry with a right checksum."""
    for segment in reversed(partition.segments):
        found = _written_in(segment)
        if found is not None:
            return found
        if segment is not partition.segments[0]:
            continue
    return partition.segments[0].base_offset if partition.segments else 0


def _written_in(segment: LogSegment) -> int | None:
    """Return the same for one segment, walking from the last index entry; None if there is no such entry."""
    index = segment.offset_index
    positions = [index.entries[-1].position] if index is not None and index.entries else []
    for position in (*positions, 0):
        reached: int | None = None
        try:
            for frame in segment.ordered_frames(position):
                if frame.end == segment.source.size and not checksum_is_valid(frame):
                    break
                reached = frame.header.next_offset
        except FormatError:
            pass  # the segment is read up to the damage
        if reached is not None:
            return reached
    return None


def offset_after(partition: Partition, start: int, size: int) -> int:
    """Return the offset that is `size` bytes after an offset, by the offset indexes; always above the start."""
    left = size
    for segment in partition.segments:
        if segment.allowed.last < start:
            continue
        entries = segment.offset_index.entries if segment.offset_index is not None else ()
        first = bisect_left(entries, start, key=lambda entry: entry.offset)
        position = entries[first - 1].position if first else 0
        if segment.size - position > left:
            stop = bisect_left(entries, position + left, lo=first, key=lambda entry: entry.position)
            if stop < len(entries):
                return max(entries[stop].offset + 1, start + 1)
            return segment.allowed.last + 1
        left -= segment.size - position
    return partition.log_end_offset
