"""Partition directories written out by hand for tests, with what a full scan finds in them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from helpers.batches import batch, record
from helpers.full_scan import Batch, Log, Segment
from helpers.messages import message, wrapper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TRANSACTIONAL, CONTROL = 0x10, 0x20
ABORT, COMMIT = 0, 1
MARKERS = {ABORT: "ABORT", COMMIT: "COMMIT"}


@dataclass
class Entry:
    """Bytes of an entry, and what they mean."""

    data: bytes
    batch: Batch


def data_batch(  # noqa: PLR0913 - what a batch can be
    base: int,
    times: Sequence[int],
    *,
    deltas: Sequence[int] | None = None,
    last_delta: int | None = None,
    producer: int = -1,
    epoch: int = 0,
    value: bytes = b"v",
) -> Entry:
    """Return a record batch; transactional if it has a producer. ``deltas`` leaves offsets out, as compaction does."""
    deltas = range(len(times)) if deltas is None else deltas
    last = max([*deltas, 0]) if last_delta is None else last_delta
    origin = times[0] if times else 0
    section = b"".join(record(time - origin, delta, b"k", value) for time, delta in zip(times, deltas, strict=True))
    data = batch(
        section,
        len(times),
        base_offset=base,
        attributes=TRANSACTIONAL if producer >= 0 else 0,
        last_offset_delta=last,
        base_timestamp_ms=origin,
        max_timestamp_ms=max(times, default=-1),
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
    )
    records = [(base + delta, time) for time, delta in zip(times, deltas, strict=True)]
    return Entry(data, Batch(0, len(data), base, base + last, producer_id=producer, records=records))


def marker(base: int, producer: int, kind: int, time: int = 1000, epoch: int = 0) -> Entry:
    """Return an end marker: version 0 and type as key, version 0 and coordinator epoch 0 as value."""
    section = record(key=struct.pack(">hh", 0, kind), value=bytes(6))
    attributes = TRANSACTIONAL | CONTROL
    data = batch(
        section,
        base_offset=base,
        attributes=attributes,
        base_timestamp_ms=time,
        max_timestamp_ms=time,
        producer_id=producer,
        producer_epoch=epoch,
    )
    meant = Batch(0, len(data), base, base, is_control=True, producer_id=producer, marker=MARKERS.get(kind))
    meant.records.append((base, time))
    return Entry(data, meant)


def empty_control_batch(base: int, producer: int) -> Entry:
    """Return what is left of a marker of which compaction left nothing but the producer."""
    data = batch(
        b"", 0, base_offset=base, attributes=TRANSACTIONAL | CONTROL, last_offset_delta=0, producer_id=producer
    )
    return Entry(data, Batch(0, len(data), base, base, is_control=True, producer_id=producer))


def plain_message(offset: int, time: int, magic: int) -> Entry:
    data = message(offset, b"k", b"v", magic=magic, timestamp_ms=time)
    seen = time if magic else -1
    return Entry(data, Batch(0, len(data), offset, offset, records=[(offset, seen)]))


def wrapped_messages(base: int, times: Sequence[int]) -> Entry:
    """Return a magic 1 wrapper with relative offsets inside."""
    inner = [message(number, b"k", b"v", magic=1, timestamp_ms=time) for number, time in enumerate(times)]
    last = base + len(times) - 1
    data = wrapper(*inner, offset=last, magic=1, timestamp_ms=max(times))
    records = [(base + number, time) for number, time in enumerate(times)]
    return Entry(data, Batch(0, len(data), base, last, records=records))


@dataclass
class MadeLog:
    """Segments by base offset, to be written to a directory.

    ``tails`` are bytes after a segment's last entry.
    """

    segments: Mapping[int, Sequence[Entry]]
    tails: Mapping[int, bytes] = field(default_factory=dict)

    def write(self, root: Path, indexes: Mapping[str, bytes] | None = None) -> Path:
        """Return a partition directory; ``indexes`` are files by name."""
        directory = root / "topic-0"
        directory.mkdir(parents=True)
        for base, entries in self.segments.items():
            data = b"".join(entry.data for entry in entries) + self.tails.get(base, b"")
            (directory / f"{base:020}.log").write_bytes(data)
        for name, content in (indexes or {}).items():
            (directory / name).write_bytes(content)
        return directory

    def full_scan(self, log_start_offset: int = 0) -> Log:
        segments = []
        for base, entries in sorted(self.segments.items()):
            position = 0
            for entry in entries:
                entry.batch.position = position
                position += len(entry.data)
            segments.append(Segment(base, [entry.batch for entry in entries]))
        return Log(segments, max(log_start_offset, segments[0].base_offset))


def offset_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def checkpoint(*entries: tuple[str, int, int]) -> str:
    lines = [f"{topic} {partition} {offset}" for topic, partition, offset in entries]
    return "\n".join(["0", str(len(lines)), *lines, ""])
