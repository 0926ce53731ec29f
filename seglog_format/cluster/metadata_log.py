"""Reading the metadata of a KRaft cluster: the newest complete snapshot, then the log after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.cluster.metadata_state import MetadataRecord, MetadataState
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import decode_metadata_record
from seglog_format.errors import Location
from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.partition import Partition
from seglog_format.log.segment import LogSegment
from seglog_format.model import INT64_MAX, TailKind
from seglog_format.names import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format.model import BatchHeader
    from seglog_format.record_model import Message, Record, RecordBatch


class MetadataLog:
    """The metadata log of one node: its snapshots and segments.

    Attributes:
        path: of the directory ``__cluster_metadata-0``; in Kafka 2.8 ``@metadata-0``.
        snapshots: the finished snapshots, oldest first.
    """

    def __init__(self, path: Path) -> None:
        """List the directory.

        Raises:
            UsageError: there is no such directory.
        """
        self.path = path
        self._listing = list_partition(path)
        finished = (each for each in self._listing.metadata_snapshots if not each.name.suffix)
        self.snapshots = tuple(sorted(finished, key=lambda each: (each.base_offset, each.name.epoch)))

    @property
    def log_start_offset(self) -> int | None:
        """The base offset of the first segment; None without segments."""
        return self._listing.base_offsets[0] if self._listing.segments else None

    def records(self, from_offset: int = 0) -> Iterator[MetadataRecord]:
        """Yield the records of the segments from an offset on, in offset order.

        Raises:
            FormatError: while iterating: at the first damaged entry, or the first record that cannot be decoded.
        """
        with Partition(self._listing) as partition:
            for segment in partition.segments:
                if segment.allowed.last >= from_offset:
                    records = records_of(segment.batches(), segment.path)
                    yield from (record for record in records if record.offset >= from_offset)

    def state(self, *, at_offset: int | None = None, at_time_ms: int | None = None) -> MetadataState:
        """Return the state of the metadata after a record.

        Args:
            at_offset: the last record to replay; all by default.
            at_time_ms: leave out records that were written later.
        """
        last = INT64_MAX if at_offset is None else at_offset
        limit = INT64_MAX if at_time_ms is None else at_time_ms
        state = self._newest_snapshot(last, limit)
        first = self.log_start_offset
        if first is not None and first > state.end_offset:
            state.has_gap = True
            state.problems.append(f"{self.path}: records {state.end_offset} to {first - 1} are missing")
        state.replay(self._until(state.end_offset, last, limit))
        if at_offset is None and at_time_ms is None and not state.problems:
            state.problems += self._losses(state.end_offset)
        return state

    def _losses(self, end: int) -> Iterator[str]:
        """Yield a text for each sign that the log had more after its last whole entry."""
        with Partition(self._listing) as partition:
            tail = partition.segments[-1].tail if partition.segments else None
            if tail is not None and tail.kind in {TailKind.TRAILING, TailKind.PARTIAL}:
                yield f"{partition.segments[-1].path}: the log ends within an entry, at position {tail.position}"
        reached = max((each.base_offset for each in self._listing.snapshots), default=0)
        if reached > end:
            yield f"{self.path}: records {end} to {reached - 1} are missing"

    def _newest_snapshot(self, last: int, limit: int) -> MetadataState:
        """Return the state of the newest complete snapshot without records after a last offset or a time limit."""
        problems: list[str] = []
        for snapshot in reversed(self.snapshots):
            if snapshot.base_offset > last + 1:
                continue
            state = snapshot_state(snapshot.path)
            if state.problems:
                problems += state.problems
            elif state.timestamp_ms <= limit:
                state.end_offset, state.epoch = snapshot.base_offset, snapshot.name.epoch
                state.problems = problems
                return state
        return MetadataState(problems=problems)

    def _until(self, start: int, last: int, limit: int) -> Iterator[MetadataRecord]:
        for record in self.records(start):
            if record.offset > last or record.timestamp_ms > limit:
                return
            yield record


def snapshot_state(path: Path) -> MetadataState:
    """Return the state in a ``.checkpoint`` file.

    Its `end_offset` is the number of records in the file; the name of the file has the end offset of the snapshot. A
    file without the footer is unfinished, which is added to `problems`.
    """
    state = MetadataState(snapshot=path)
    with LogSegment(SegmentFiles(0, path)) as segment:
        state.replay(records_of(segment.batches(), segment.path))
    state.timestamp_ms = state.snapshot_time_ms
    if not state.is_finished:
        state.problems.append(f"{path}: the snapshot does not end with its footer")
    return state


def records_of(batches: Iterable[RecordBatch], path: str) -> Iterator[MetadataRecord]:
    """Decode the records of batches of the metadata log.

    Args:
        batches: in their order.
        path: of the file, for errors.

    Raises:
        FormatError: while iterating: at the first damage.
    """
    for batch in batches:
        for record in batch.records:
            kind, fields = _decoded(batch.header, record, Location(path, batch.position))
            epoch = getattr(batch.header, "partition_leader_epoch", -1)
            yield MetadataRecord(
                record.offset, epoch, record.timestamp_ms, kind, fields, getattr(batch.header, "is_control", False)
            )


def _decoded(header: BatchHeader, record: Record | Message, at: Location) -> tuple[str, dict[str, object]]:
    if getattr(header, "is_control", False):
        control = decode_control_record(record.key, record.value, at)
        return control.label, control.fields
    decoded = decode_metadata_record(METADATA_TOPIC, record.value)
    data = decoded.get("data")
    return str(decoded["type"]), data if isinstance(data, dict) else {}
