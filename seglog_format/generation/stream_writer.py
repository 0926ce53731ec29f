"""Write the content of a partition by version 2 of recipes: encoded by columns, appended in groups."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.build import MAGIC_2, build_batch, with_timestamps
from seglog_format.codec.checksum import crc32c
from seglog_format.codec.columns import encode_columns
from seglog_format.codec.control_batch import build_end_marker
from seglog_format.codec.control_record import EndMarker
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.framing import read_header
from seglog_format.engine.choice import is_installed
from seglog_format.errors import Location, UsageError
from seglog_format.generation.plan import COORDINATOR_EPOCH, Turn, codec_of, encoded
from seglog_format.layouts import RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import ENTRY_PREFIX_SIZE, TimestampOffset, TimestampType
from seglog_format.schema.fixed_fields import ATTRIBUTES_POSITION, ENTRY_PREFIX
from seglog_format.state.config import IndexUnit
from seglog_format.writing.append import Entry, as_follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.generation.stream import Lane, PartitionStream, Placed, Placing
    from seglog_format.model import ControlRecordType
    from seglog_format.state.config import LogConfig
    from seglog_format.writing.writer import PartitionWriter

BASE_OFFSET, BATCH_CRC, BASE_TIMESTAMP, MAX_TIMESTAMP = map(
    RECORD_BATCH_HEADER_LAYOUT.slot, ("base_offset", "crc", "base_timestamp_ms", "max_timestamp_ms")
)
GENERATED: Final = Location("generated")
GROUP_SIZE: Final = 1 << 20
"""Bytes that are appended at once, about."""


def write_stream(
    stream: PartitionStream, writer: PartitionWriter, set_clock: Callable[[int], None], report: Callable[[int], None]
) -> Placing:
    """Write all batches of a partition.

    Args:
        stream: the content.
        writer: of the partition.
        set_clock: sets the time of the broker.
        report: called with the number of records so far.

    Returns:
        The transactions, and the number of batches.

    Raises:
        UsageError: a batch is larger than its topic allows, or its producer may not write it.
        WriteError: writing failed.
    """
    placing = stream.placing(_encoded_lane)
    group = _Group(stream.topic.config, writer)
    done = 0
    for placed in placing:
        if placed.rolls or group.is_full:
            group.append()
            report(done)
        set_clock(placed.clock_ms)
        if placed.rolls and placed.base_offset:
            writer.roll()
            group.position = 0
        for entry in _entries(placed, stream.topic.config):
            group.add(entry)
        done += placed.count if placed.marker is None else 0
    group.append()
    report(done)
    return placing


class _Group:
    """Entries that are appended at once, as long as they fit into one segment."""

    def __init__(self, config: LogConfig, writer: PartitionWriter) -> None:
        self._config, self._writer = config, writer
        self._is_single = config.generation.index_unit is IndexUnit.APPEND
        self._entries: list[Entry] = []
        self._size = 0
        self.position = 0

    @property
    def is_full(self) -> bool:
        """Return whether it is time to append."""
        return self._size >= GROUP_SIZE or (self._is_single and self._size > 0)

    def add(self, entry: Entry) -> None:
        """Add an entry; first append those before it if it does not fit into their segment."""
        size = len(entry.data)
        if size > min(self._config.max_message_bytes, self._config.segment_bytes):
            msg = (
                f"a batch of {size} bytes is larger than max.message.bytes or segment.bytes (SEG-APP-006, SEG-APP-021)"
            )
            raise UsageError(msg)
        if self.position + self._size + size > self._config.segment_bytes:
            self.append()
        self._entries.append(entry)
        self._size += size

    def append(self) -> None:
        """Append the entries."""
        if not self._entries:
            return
        appended = self._writer.append_prepared(self._entries)
        self.position = self._size + (self.position if appended.rolled is None else 0)
        self._entries, self._size = [], 0


def _encoded_lane(lane: Lane) -> Iterator[Any]:
    """Yield each batch of a producer, encoded with base offset 0; of messages, the records to encode later."""
    if lane.step.magic < MAGIC_2:
        return lane.batches()
    producer = lane.producer
    fields: dict[str, Any] = {
        "codec": codec_of(lane.step),
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "is_transactional": lane.step.producers.kind == "transactional",
        "partition_leader_epoch": lane.leader_epoch,
    }
    if is_installed():
        encoder = encode_columns(lane.rows.to_arrow(), counts=lane.counts, base_sequence=producer.sequence, **fields)
        return _cut(encoder)
    return (encode_batch(build_batch(records, base_sequence=producer.sequence, **fields)) for records in lane.batches())


def _cut(runs: Iterator[bytes]) -> Iterator[memoryview]:
    """Yield the batches in runs of whole ones."""
    for run in runs:
        view, position = memoryview(run), 0
        while position < len(view):
            end = position + ENTRY_PREFIX_SIZE + ENTRY_PREFIX.unpack_from(view, position)[1]
            yield view[position:end]
            position = end


def _entries(placed: Placed, config: LogConfig) -> list[Entry] | tuple[Entry, ...]:
    is_stamped = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    stamp = placed.clock_ms if is_stamped else None
    if placed.marker is None and placed.step.magic < MAGIC_2:
        turn = Turn(placed.step, placed.producer, placed.content, placed.base_offset)
        data = encoded(turn, placed.content, placed.base_offset, stamp)
        return as_follower(data, config, next_offset=placed.base_offset)
    marker = None
    if placed.marker is not None:
        data = _marker(placed)
        marker = EndMarker(placed.marker, COORDINATOR_EPOCH, placed.clock_ms)
    else:
        data = BASE_OFFSET.layout.pack(placed.base_offset) + placed.content[BASE_OFFSET.layout.size :]
    if is_stamped:
        data = with_timestamps(data, TimestampType.LOG_APPEND_TIME, placed.clock_ms)
    header = read_header(memoryview(data), len(data), MAGIC_2, GENERATED)
    largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
    return [Entry(data, header, placed.base_offset, largest, marker)]


def _marker(placed: Placed) -> bytes:
    assert placed.marker is not None
    producer = placed.producer
    marker = bytearray(_marker_of(placed.marker, producer.producer_id, producer.epoch, placed.leader_epoch))
    for field in (BASE_TIMESTAMP, MAX_TIMESTAMP):
        field.write(marker, placed.clock_ms)
    BASE_OFFSET.write(marker, placed.base_offset)
    BATCH_CRC.write(marker, crc32c(memoryview(marker)[ATTRIBUTES_POSITION:]))
    return bytes(marker)


@lru_cache(maxsize=4096)
def _marker_of(kind: ControlRecordType, producer_id: int, epoch: int, leader_epoch: int) -> bytes:
    """Encode an end marker without its time and place."""
    batch = build_end_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=COORDINATOR_EPOCH,
        timestamp_ms=0,
        partition_leader_epoch=leader_epoch,
    )
    return encode_batch(batch)
