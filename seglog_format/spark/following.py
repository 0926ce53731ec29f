"""The steps of a stream over growing logs: the offsets from which and up to which each step reads.

Offsets are those of Spark's Kafka connector: for each partition, the next offset to read. A step ends with a whole
entry that has a right checksum, so an entry that a broker is just writing is left for the next step. Damage before such
an end is treated as the mode of the query says.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql.datasource import DataSourceStreamReader

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.entry_table import in_order
from seglog_format.log.search import unexpected_end
from seglog_format.model import TailKind
from seglog_format.recovery.salvage_scan import salvage_scan
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.offsets import Bounds, offsets_as_json, offsets_from_json, resolve_start
from seglog_format.spark.options import FAIL_FAST
from seglog_format.spark.pieces import Task
from seglog_format.spark.planning import pieces_of, shared_out, wanted_replicas
from seglog_format.spark.source_parts import Part, one_line_errors, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from seglog_format.log.partition import Partition
    from seglog_format.log.segment import LogSegment
    from seglog_format.spark.discovery import Replica
    from seglog_format.spark.offsets import TopicPartition
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import Piece

LOGGER: Final = logging.getLogger(__name__)

Offsets: TypeAlias = "dict[TopicPartition, int]"

PATIENT_TRIGGERS: Final = 10
PATIENT_SECONDS: Final = 10
"""A warning is due if the same incomplete entry is the end of a log for so many triggers, and for so long."""


class DataLossError(UsageError):
    """Offsets that a stream has to read next no longer exist."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log.

    Attributes:
        offset: the one after the last whole entry with a right checksum.
        incomplete: where an entry begins after it whose bytes are not all there yet; None if there is none.
    """

    offset: int
    incomplete: Location | None = None


@dataclass
class _Waiting:
    """An incomplete entry that a stream waits for."""

    at: Location
    since: float
    triggers: int = 0
    is_reported: bool = False


class Follower:
    """Finds the offsets that a stream can read next, and those that were lost.

    Attributes:
        options: options of the stream.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self._waiting: dict[TopicPartition, _Waiting] = {}

    def initial(self) -> Offsets:
        """Return the offsets at which a new stream starts.

        Raises:
            UsageError: as for a batch query.
            ReadError: in mode ``failfast``: damage, where the stream starts at the end.
        """
        found = {}
        for replica in wanted_replicas(self.options):
            with replica.open(self.options) as partition:
                if self.options.starting.kind == "latest":
                    found[replica.key] = self._end(partition).offset
                else:
                    found[replica.key] = resolve_start(self.options.starting, partition, replica.key)
        return found

    def latest(self, *, is_final: bool = False) -> Offsets:
        """Return the present end of each log.

        A log that goes on ending with the same incomplete entry is reported in a warning.

        Args:
            is_final: whether the query ends there; an incomplete entry is then reported at once.

        Raises:
            ReadError: in mode ``failfast``: damage near the end of a log.
        """
        found = {}
        for replica in wanted_replicas(self._unbounded):
            with replica.open(self.options) as partition:
                end = self._end(partition)
            found[replica.key] = end.offset
            self._note(replica.key, end.incomplete, is_final)
        return found

    def _note(self, key: TopicPartition, incomplete: Location | None, is_final: bool) -> None:  # noqa: FBT001
        """Count the triggers at which a log ends with an incomplete entry, and warn of it once."""
        waiting = self._waiting.get(key)
        if incomplete is None:
            self._waiting.pop(key, None)
            return
        if waiting is None or waiting.at != incomplete:
            waiting = self._waiting[key] = _Waiting(incomplete, time.monotonic())
        waiting.triggers += 1
        is_late = time.monotonic() - waiting.since >= PATIENT_SECONDS and waiting.triggers >= PATIENT_TRIGGERS
        if (is_final or is_late) and not waiting.is_reported:
            waiting.is_reported = True
            text = "seglog: %s:%d: the log ends with an incomplete entry (%d triggers): it is read once it is whole"
            LOGGER.warning(text, incomplete.path, incomplete.position, waiting.triggers)

    @property
    def _unbounded(self) -> ReadOptions:
        """The options without a start: a start would have to name every partition, even new ones."""
        return replace(self.options, starting=type(self.options.starting)("earliest"))

    def _end(self, partition: Partition) -> LogEnd:
        try:
            end = written_up_to(partition, self.options.mode)
            if self.options.is_committed_only:
                return replace(end, offset=self._stable(partition, end.offset))
        except FormatError as error:
            from seglog_format.spark.damage import ReadError, explained  # noqa: PLC0415 - brings Arrow

            raise ReadError(explained(error)) from error
        return replace(end, offset=max(end.offset, partition.log_start_offset))

    def _stable(self, partition: Partition, end: int) -> int:
        """Return the last stable offset; after damage it is not known which transactions were committed.

        Raises:
            FormatError: in mode ``failfast``: whole entries follow damage.
        """
        transactions = partition.transactions
        if transactions.damage is not None and transactions.end_offset < end:
            if self.options.mode == FAIL_FAST:
                raise transactions.damage
            LOGGER.warning("seglog: no record after damage is committed for certain: %s", transactions.damage)
        return partition.last_stable_offset

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
                planned.append((replica, [replace(piece, has_to_reach=piece.is_last) for piece in pieces]))
        if self.options.is_committed_only:
            return [Task(tuple(pieces), replica.name) for replica, pieces in planned if pieces]
        return shared_out([(piece, replica.storage) for replica, pieces in planned for piece in pieces], self.options)


def written_up_to(partition: Partition, mode: str) -> LogEnd:
    """Return the end of a log.

    Args:
        partition: the log.
        mode: what to do about damage: ``failfast`` raises, the others pass over it.

    Raises:
        FormatError: in mode ``failfast``: an entry near the end cannot be framed, and is not merely incomplete.
    """
    incomplete = None
    for segment in reversed(partition.segments):
        is_last = segment is partition.segments[-1]
        found, waiting = _written_in(segment, mode, is_last=is_last)
        incomplete = waiting if is_last else incomplete
        if found is not None:
            return LogEnd(found, incomplete)
    return LogEnd(partition.segments[0].base_offset if partition.segments else 0, incomplete)


def _written_in(segment: LogSegment, mode: str, *, is_last: bool) -> tuple[int | None, Location | None]:
    """Return the end of one segment, None if it has no entry, and the place of an incomplete entry.

    The walk begins at the last index entry. An index may be wrong: damage counts only if a walk from the start of the
    segment also meets it.
    """
    index, size = segment.offset_index, segment.source.size
    positions = [] if index is None else [entry.position for entry in index.entries[-1:] if entry.position < size]
    for position in (*positions, 0):
        walked = _walked(segment, position, is_last=is_last)
        if walked.error is None and (walked.reached is not None or not position):
            return walked.reached, walked.incomplete
    if mode == FAIL_FAST:
        assert walked.error is not None
        raise walked.error
    later = salvage_scan(segment.source.view(walked.position, size), segment.allowed, segment.path)
    reached = later.last_offsets[-1] + 1 if later.last_offsets else walked.reached
    at_end = [walked.position + each.start for each in later.damaged if walked.position + each.end == size]
    return reached, Location(segment.path, at_end[0]) if at_end else None


@dataclass(frozen=True, slots=True)
class _Walked:
    """What a walk along the entries of a segment has met.

    Attributes:
        reached: the offset after the last whole entry; None if there is none.
        position: where the walk ended.
        incomplete: the same, if an incomplete entry is there.
        error: the damage there, if there is any.
    """

    reached: int | None
    position: int
    incomplete: Location | None = None
    error: FormatError | None = None


def _walked(segment: LogSegment, position: int, *, is_last: bool) -> _Walked:
    reached: int | None = None
    frames = segment.frames(position)
    try:
        for frame in in_order(frames, segment.path, segment.allowed, segment.base_offset - 1):
            if frame.end == segment.source.size and not checksum_is_valid(frame):
                return _Walked(reached, frame.position, Location(segment.path, frame.position))
            reached = frame.header.next_offset
        error = unexpected_end(frames.tail, segment.source, segment.allowed, segment.path, is_last=is_last)
    except FormatError as damage:
        error = damage.with_traceback(None)
    tail = frames.tail
    is_incomplete = error is None and tail.kind in {TailKind.PARTIAL, TailKind.TRAILING}
    return _Walked(reached, frames.position, Location(segment.path, tail.position) if is_incomplete else None, error)


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


class PlainStreamReader(DataSourceStreamReader):
    """Reads the records that were appended to the logs since the last step.

    Attributes:
        options: of the query.
        schema: the schema that Spark wants.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._target: dict[tuple[str, int], int] | None = None
        self._follower = Follower(options)
        self._last_step = -math.inf

    @one_line_errors()
    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802 - Spark's names, from here on
        """Return the offsets at which a new stream starts."""
        return offsets_as_json(self._follower.initial())

    @one_line_errors()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: ANN401, N802
        """Return the offsets at which the next step ends. Spark before 4.2 passes neither a start nor a limit."""
        latest = self._follower.latest() if self._target is None else self._target
        if start is None:
            return offsets_as_json(latest)
        begun = offsets_from_json(start)
        if self._target is None and self._is_too_little(begun, latest):
            return start
        self._last_step = time.monotonic()
        rows, size = getattr(limit, "max_rows", None), getattr(limit, "max_bytes", None)
        return offsets_as_json(self._follower.next(begun, latest, rows=rows, size=size))

    def _is_too_little(self, start: dict[tuple[str, int], int], latest: dict[tuple[str, int], int]) -> bool:
        """Return whether fewer records wait than a step has to have, and the time is not yet over."""
        waiting = sum(max(offset - start.get(key, 0), 0) for key, offset in latest.items())
        is_late = (time.monotonic() - self._last_step) * 1000 >= self.options.max_delay_ms
        return 0 < waiting < self.options.min_rows_per_trigger and not is_late

    @one_line_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks between two offsets."""
        tasks = self._follower.tasks(offsets_from_json(start), offsets_from_json(end))
        return [Part(task, EVERYTHING) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return rows_of(partition, self.schema, self.options) if isinstance(partition, Part) else iter(())

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: no state is kept."""

    def stop(self) -> None:
        """Do nothing: no file is open."""
