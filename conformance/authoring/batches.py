"""Record batches of magic 2: the bytes of one, and what a reader has to answer for it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from authoring.primitives import crc32c, replaced, sequence, shown, sized, varint

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

BASE_OFFSET: Final = (0, "q")
LENGTH: Final = (8, "i")
LEADER_EPOCH: Final = (12, "i")
MAGIC: Final = (16, "b")
CRC: Final = (17, "I")
ATTRIBUTES: Final = (21, "h")
LAST_OFFSET_DELTA: Final = (23, "i")
BASE_TIMESTAMP: Final = (27, "q")
MAX_TIMESTAMP: Final = (35, "q")
PRODUCER_ID: Final = (43, "q")
PRODUCER_EPOCH: Final = (51, "h")
BASE_SEQUENCE: Final = (53, "i")
COUNT: Final = (57, "i")
"""Where each field of the header stands, and its type."""

FIELDS: Final = {
    "base-offset": BASE_OFFSET,
    "length": LENGTH,
    "leader-epoch": LEADER_EPOCH,
    "magic": MAGIC,
    "crc": CRC,
    "attributes": ATTRIBUTES,
    "last-offset-delta": LAST_OFFSET_DELTA,
    "base-timestamp": BASE_TIMESTAMP,
    "max-timestamp": MAX_TIMESTAMP,
    "producer-id": PRODUCER_ID,
    "producer-epoch": PRODUCER_EPOCH,
    "base-sequence": BASE_SEQUENCE,
    "records-count": COUNT,
}


@dataclass(frozen=True, kw_only=True)
class Rec:
    """A record.

    Attributes:
        delta: offset delta; its place in the batch where None.
        time: timestamp delta.
        raw: bytes to write instead of those that the other fields make.
        control: what the answer says beside the record in a control batch.
    """

    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    delta: int | None = None
    time: int = 0
    attributes: int = 0
    raw: bytes | None = None
    control: tuple[tuple[str, Any], ...] = ()

    def body(self) -> bytes:
        """Everything after the length."""
        fields = bytes([self.attributes]) + varint(self.time) + varint(self.delta or 0)
        fields += sized(self.key) + sized(self.value) + varint(len(self.headers))
        return fields + b"".join(sized(name) + sized(content) for name, content in self.headers)

    def encoded(self) -> bytes:
        """Return the record as it is stored."""
        return self.raw if self.raw is not None else sized(self.body())


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A batch; fields that are None follow from the records.

    Attributes:
        stored: bytes behind the header, instead of the records.
        compress: makes the bytes behind the header from the records.
        codec: its id is part of the attributes.
    """

    base: int = 0
    recs: tuple[Rec, ...] = (Rec(),)
    codec: str = "none"
    compress: Callable[[bytes], bytes] | None = None
    attributes: int = 0
    leader_epoch: int = 0
    last_delta: int | None = None
    base_timestamp: int = 1000
    max_timestamp: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    count: int | None = None
    stored: bytes | None = None

    @property
    def placed(self) -> tuple[Rec, ...]:
        """The records with their offset deltas."""
        return tuple(rec if rec.delta is not None else replace(rec, delta=at) for at, rec in enumerate(self.recs))

    @property
    def last_offset_delta(self) -> int:
        """As given, or that of the last record."""
        if self.last_delta is not None:
            return self.last_delta
        return max((rec.delta or 0 for rec in self.placed), default=0)

    @property
    def next_offset(self) -> int:
        """The first offset after the batch."""
        return self.base + self.last_offset_delta + 1

    @property
    def newest(self) -> int:
        """The maximum timestamp."""
        if self.max_timestamp is not None:
            return self.max_timestamp
        return max((self.base_timestamp + rec.time for rec in self.recs), default=-1)

    @property
    def all_attributes(self) -> int:
        """With the codec."""
        return self.attributes | CODECS.index(self.codec)

    def section(self) -> bytes:
        """Return the records as stored, before compression."""
        return b"".join(rec.encoded() for rec in self.placed)

    def encoded(self) -> bytes:
        """Return the batch as it is stored."""
        stored = self.stored
        if stored is None:
            stored = self.section() if self.compress is None else self.compress(self.section())
        header = HEADER.pack(
            self.base,
            0,
            self.leader_epoch,
            2,
            0,
            self.all_attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.newest,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            len(self.recs) if self.count is None else self.count,
        )
        return sealed(header + stored)

    def answer(self, position: int) -> dict[str, Any]:
        """Return what a reader answers."""
        data = self.encoded()
        return {
            "position": position,
            "sizeInBytes": len(data),
            "magic": 2,
            "baseOffset": str(self.base),
            "lastOffset": str(self.base + self.last_offset_delta),
            "nextOffset": str(self.next_offset),
            "crc": int.from_bytes(data[17:21], "big"),
            "codec": self.codec,
            "timestampType": "LogAppendTime" if self.attributes & LOG_APPEND_TIME else "CreateTime",
            "baseTimestamp": str(self.base_timestamp),
            "maxTimestamp": str(self.newest),
            "deleteHorizonMs": str(self.base_timestamp) if self.attributes & DELETE_HORIZON else None,
            "recordsCount": len(self.recs),
            "producerId": str(self.producer_id),
            "producerEpoch": self.producer_epoch,
            "baseSequence": self.base_sequence,
            "lastSequence": sequence(self.base_sequence, self.last_offset_delta),
            "isTransactional": bool(self.attributes & TRANSACTIONAL),
            "isControl": bool(self.attributes & CONTROL),
            "partitionLeaderEpoch": self.leader_epoch,
            "isValid": True,
            "records": [self._record(rec) for rec in self.placed],
        }

    def follower(self, offset: int | None = None) -> Batch:
        """One more good batch, to see whether a reader gets past this one."""
        base = self.next_offset if offset is None else offset
        return Batch(base=base, recs=(Rec(key=b"next", value=b"good"),), base_timestamp=2000)

    def _record(self, rec: Rec) -> dict[str, Any]:
        stamped = self.attributes & LOG_APPEND_TIME
        timestamp = self.newest if stamped else (self.base_timestamp + rec.time + 2**63) % 2**64 - 2**63
        answer: dict[str, Any] = {
            "offset": str(self.base + (rec.delta or 0)),
            "timestamp": str(timestamp),
            "key": shown(rec.key),
            "value": shown(rec.value),
        }
        if rec.headers:
            answer["headers"] = [[shown(name), shown(content)] for name, content in rec.headers]
        if self.producer_id != -1:
            answer["sequence"] = sequence(self.base_sequence, rec.delta or 0)
        return answer | dict(rec.control)


def sealed(data: bytes) -> bytes:
    """Return the same batch with a right length and checksum."""
    data = replaced(data, *LENGTH, len(data) - 12)
    return replaced(data, *CRC, crc32c(data[21:]))


def with_field(data: bytes, field: tuple[int, str], value: int, *, seal: bool = True) -> bytes:
    """Return the same batch with another value in one field, and the checksum made right or left as it was."""
    data = replaced(data, *field, value)
    return replaced(data, *CRC, crc32c(data[21:])) if seal else data
