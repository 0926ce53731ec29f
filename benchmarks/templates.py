"""Batches of magic 2 by the thousand: the fixed bytes of one batch, copied over random bytes.

All batches of a template have the same layout, which lets numpy write many at a time. The reference reads a sample of
the result (`datasets`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import google_crc32c
import numpy as np
from contents import Columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC_AT, CRC_FROM = 17, 21
BASE_TIMESTAMP_AT, MAX_TIMESTAMP_AT, SEQUENCE_AT = 27, 35, 53
NO_PRODUCER: Final = (-1, -1, -1)
FIRST_TIMESTAMP_MS: Final = 1_700_000_000_000
BATCH_MS: Final = 200
"""Milliseconds between the first records of two batches; all records of a batch lie within them."""

HEADER_SIZE: Final = 61
assert HEADER.size == HEADER_SIZE


def varint(number: int) -> bytes:
    """Return a number in zigzag form, seven bits a byte."""
    rest, found = number << 1 ^ number >> 63, bytearray()
    while rest >> 7:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*found, rest))


@dataclass(frozen=True, slots=True)
class Record:
    """The sizes of a record; its bytes are random."""

    key_size: int
    value_size: int
    header_keys: tuple[str, ...] = ()
    header_value_size: int = 0


@dataclass(slots=True)
class Layout:
    """The bytes of the records of a batch, with the positions of random ones."""

    data: bytearray = field(default_factory=bytearray)
    fixed: list[int] = field(default_factory=list)
    edges: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, record: Record, offset_delta: int, timestamp_delta: int) -> None:
        """Add a record."""
        body = Layout()
        body.put(b"\0" + varint(timestamp_delta) + varint(offset_delta) + varint(record.key_size))
        key = body.leave(record.key_size)
        body.put(varint(record.value_size))
        value = body.leave(record.value_size)
        body.put(varint(len(record.header_keys)))
        for name in record.header_keys:
            body.put(varint(len(name)) + name.encode() + varint(record.header_value_size))
            body.leave(record.header_value_size)
        self.put(varint(len(body.data)))
        start = len(self.data)
        self.fixed += [start + each for each in body.fixed]
        ends = (key, key + record.key_size - 1, value, value + record.value_size - 1)
        self.edges.append((start + ends[0], start + ends[1], start + ends[2], start + ends[3]))
        self.data += body.data

    def put(self, data: bytes) -> None:
        """Add bytes that every batch has."""
        self.fixed += range(len(self.data), len(self.data) + len(data))
        self.data += data

    def leave(self, size: int) -> int:
        """Reserve space for random bytes; return its position."""
        self.data += bytes(size)
        return len(self.data) - size


@dataclass(frozen=True, slots=True)
class Entries:
    """Batches or messages as stored in a file, with their contents: each array has one element per batch or message.

    Attributes:
        data: bytes of all.
        sizes, crcs, last_offsets, max_timestamps: values of each.
        columns: contents of their records.
        uncompressed: bytes without compression.
    """

    data: bytes
    sizes: NDArray[np.int64]
    crcs: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    max_timestamps: NDArray[np.int64]
    columns: Columns
    uncompressed: int


class Template:
    """Batches that differ only in offsets, times and random bytes.

    Args:
        record: sizes of every record.
        timestamp_deltas: deltas of the records of a batch, ascending.
        producer: id, epoch and first sequence number; None for no producer.
    """

    def __init__(
        self, record: Record, timestamp_deltas: Sequence[int], producer: tuple[int, int, int] = NO_PRODUCER
    ) -> None:
        self.record = record
        self.deltas = np.array(timestamp_deltas, np.int64)
        layout = Layout()
        layout.put(bytes(HEADER.size))
        for number, delta in enumerate(timestamp_deltas):
            layout.add(record, number, delta)
        self.count, self.size = len(timestamp_deltas), len(layout.data)
        self._producer, self._sent = producer, producer[2]
        header = HEADER.pack(0, self.size - 12, 0, 2, 0, 0, self.count - 1, 0, 0, *producer, self.count)
        layout.data[: HEADER.size] = header
        self._fixed = np.array(layout.fixed)
        self._bytes = np.frombuffer(bytes(layout.data), np.uint8)[self._fixed]
        self._edges = np.array(layout.edges).T

    def entries(self, dice: np.random.Generator, first_batch: int, base_offset: int, count: int) -> Entries:
        """Make `count` batches with random contents.

        Args:
            dice: seeded random number generator.
            first_batch: number of the first batch in the file, which determines its time.
            base_offset: base offset of the first batch.
            count: number of batches.
        """
        data = np.frombuffer(dice.bytes(self.size * count), np.uint8).reshape(count, self.size).copy()
        data[:, self._fixed] = self._bytes
        numbers = np.arange(count, dtype=np.int64)
        bases, times = base_offset + numbers * self.count, FIRST_TIMESTAMP_MS + (first_batch + numbers) * BATCH_MS
        put(data, 0, bases, ">i8")
        put(data, BASE_TIMESTAMP_AT, times, ">i8")
        put(data, MAX_TIMESTAMP_AT, times + self.deltas[-1], ">i8")
        if self._producer != NO_PRODUCER:
            put(data, SEQUENCE_AT, self._sent + numbers * self.count, ">i4")
            self._sent += count * self.count
        crcs = np.array([google_crc32c.value(row[CRC_FROM:].tobytes()) for row in data], np.int64)
        put(data, CRC_AT, crcs, ">u4")
        columns, sizes = self._columns(data, bases, times), np.full(count, self.size, np.int64)
        last, latest = bases + self.count - 1, times + self.deltas[-1]
        return Entries(data.tobytes(), sizes, crcs, last, latest, columns, data.size)

    def _columns(self, data: NDArray[np.uint8], bases: NDArray[np.int64], times: NDArray[np.int64]) -> Columns:
        ends = [data[:, edge].astype(np.int64) << 8 * index for index, edge in enumerate(self._edges)]
        total = len(bases) * self.count
        return Columns(
            (bases[:, None] + np.arange(self.count)).ravel(),
            (times[:, None] + self.deltas).ravel(),
            np.full(total, self.record.key_size),
            np.full(total, self.record.value_size),
            (ends[0] + ends[1] + ends[2] + ends[3]).ravel(),
            np.full(total, len(self.record.header_keys)),
        )


def put(data: NDArray[np.uint8], at: int, numbers: NDArray[np.int64], kind: str) -> None:
    """Write one number into each row."""
    raw = numbers.astype(kind).view(np.uint8).reshape(len(numbers), -1)
    data[:, at : at + raw.shape[1]] = raw
