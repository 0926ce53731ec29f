"""Messages of magic 0 and 1, plain and in wrappers: their bytes, and what a reader has to answer for them."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from authoring.batches import CODECS
from authoring.primitives import crc32, replaced, shown, sized32

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_APPEND_TIME = 0x08


@dataclass(frozen=True, kw_only=True)
class Msg:
    """A plain message.

    Attributes:
        offset: as stored; in a wrapper of magic 1 the relative one.
        timestamp: of magic 1.
        behind: bytes after the value, inside the message.
    """

    magic: int = 1
    offset: int = 0
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    timestamp: int = 1000
    attributes: int = 0
    behind: bytes = b""

    @property
    def next_offset(self) -> int:
        """The first offset after the message."""
        return self.offset + 1

    def encoded(self) -> bytes:
        """Return the message as it is stored."""
        return message(
            self.magic,
            self.offset,
            self.attributes,
            self.timestamp,
            sized32(self.key) + sized32(self.value) + self.behind,
        )

    def answer(self, position: int) -> dict[str, Any]:
        """Return what a reader answers."""
        stamped = self.magic and self.attributes & LOG_APPEND_TIME
        return {
            **outermost(self.encoded(), position, self.attributes, self.timestamp, "none"),
            "baseOffset": str(self.offset),
            "records": [self.record(self.offset, self.timestamp if stamped else None)],
        }

    def record(self, offset: int, stamp: int | None) -> dict[str, Any]:
        """Return what a reader answers for the message, at an absolute offset and with the wrapper's timestamp, if any."""
        timestamp = self.timestamp if stamp is None else stamp
        return {
            "offset": str(offset),
            "timestamp": str(timestamp if self.magic else -1),
            "key": shown(self.key),
            "value": shown(self.value),
            "innerMagic": self.magic,
            "crc": int.from_bytes(self.encoded()[12:16], "big"),
            "isValid": True,
        }

    def follower(self, offset: int | None = None) -> Msg:
        """One more good message of the same magic."""
        at = self.next_offset if offset is None else offset
        return Msg(magic=self.magic, offset=at, key=b"next", value=b"good", timestamp=2000)


@dataclass(frozen=True, kw_only=True)
class Wrapper:
    """A compressed message around others.

    Attributes:
        offset: as stored; that of the last message inside where None.
        inner: messages with their offsets as stored inside.
        offsets: absolute offsets that they read as; the stored ones where None.
        timestamp: of magic 1; the largest inside where None.
        behind: bytes after the messages, before compression.
    """

    magic: int = 1
    inner: tuple[Msg, ...] = ()
    offset: int | None = None
    offsets: tuple[int, ...] | None = None
    codec: str = "gzip"
    compress: Callable[[bytes], bytes]
    attributes: int = 0
    timestamp: int | None = None
    key: bytes | None = None
    behind: bytes = b""

    @property
    def last_offset(self) -> int:
        """The stored offset."""
        return self.inner[-1].offset if self.offset is None else self.offset

    @property
    def next_offset(self) -> int:
        """The first offset after the wrapper."""
        return self.last_offset + 1

    @property
    def time(self) -> int:
        """The wrapper's own timestamp."""
        return max(one.timestamp for one in self.inner) if self.timestamp is None else self.timestamp

    @property
    def all_attributes(self) -> int:
        """With the codec."""
        return self.attributes | CODECS.index(self.codec)

    def encoded(self) -> bytes:
        """Return the wrapper as it is stored."""
        value = self.compress(b"".join(one.encoded() for one in self.inner) + self.behind)
        return message(self.magic, self.last_offset, self.all_attributes, self.time, sized32(self.key) + sized32(value))

    def answer(self, position: int) -> dict[str, Any]:
        """Return what a reader answers."""
        offsets = self.offsets or tuple(one.offset for one in self.inner)
        stamp = self.time if self.magic and self.attributes & LOG_APPEND_TIME else None
        return {
            **outermost(self.encoded(), position, self.attributes, self.time, self.codec),
            "baseOffset": str(offsets[0]),
            "records": [one.record(offset, stamp) for one, offset in zip(self.inner, offsets, strict=True)],
        }

    def follower(self, offset: int | None = None) -> Msg:
        """One more good message of the same magic."""
        return Msg(magic=self.magic).follower(self.next_offset if offset is None else offset)


def message(magic: int, offset: int, attributes: int, timestamp: int, body: bytes) -> bytes:
    """Return an entry of magic 0 or 1 around its key and value."""
    covered = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"") + body
    return struct.pack(">qiI", offset, len(covered) + 4, crc32(covered)) + covered


def resealed(data: bytes) -> bytes:
    """Return the same message with its size and checksum made right."""
    return replaced(replaced(data, 8, "i", len(data) - 12), 12, "I", crc32(data[16:]))


def moved(one: Msg, offset: int) -> Msg:
    """Return the same message at another offset."""
    return replace(one, offset=offset)


def outermost(data: bytes, position: int, attributes: int, timestamp: int, codec: str) -> dict[str, Any]:
    """Return what a reader answers for an outermost message, but for its records and its first offset."""
    magic, offset = data[16], int.from_bytes(data[:8], "big", signed=True)
    kind = "LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime"
    return {
        "position": position,
        "sizeInBytes": len(data),
        "magic": magic,
        "baseOffset": "",
        "lastOffset": str(offset),
        "nextOffset": str(offset + 1),
        "crc": int.from_bytes(data[12:16], "big"),
        "codec": codec,
        "timestampType": kind if magic else "NoTimestampType",
        "baseTimestamp": None,
        "maxTimestamp": str(timestamp if magic else -1),
        "deleteHorizonMs": None,
        "recordsCount": None,
        "producerId": "-1",
        "producerEpoch": -1,
        "baseSequence": -1,
        "lastSequence": -1,
        "isTransactional": False,
        "isControl": False,
        "partitionLeaderEpoch": -1,
        "isValid": True,
    }
