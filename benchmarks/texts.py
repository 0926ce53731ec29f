"""Entries of compressed JSON-like text, and messages of magic 1: made one by one, because their sizes differ."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

import google_crc32c
import numpy as np
from compressing import compress
from contents import Columns, edges_of
from templates import BATCH_MS, CRC_FROM, FIRST_TIMESTAMP_MS, HEADER, NO_PRODUCER, Entries, varint

from seglog_format import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGE: Final = struct.Struct(">qiIbbq")
"""Offset, size, CRC, magic, attributes and timestamp of a message of magic 1."""
MESSAGE_CRC_FROM: Final = 16
SIZE_FROM: Final = 12
LAST_DELTA_MS: Final = BATCH_MS - 1

VARINTS: Final = [varint(number) for number in range(4096)]
EVENTS: Final = ("page_view", "click", "add_to_cart", "search", "login", "purchase", "scroll")
PATHS: Final = ("products", "cart", "search", "account/orders", "help/articles", "")
AGENTS: Final = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5)", "okhttp/4.12.0")
TEXT: Final = (
    b'{"id":"%016x","event":"%b","user":"user-%05d","path":"/%b/%d","status":%d,"ms":%d,"agent":"%b","price":%d.%02d}'
)

Row = tuple[bytes | None, bytes]
"""Key and value."""


def text_rows(dice: np.random.Generator, size: int) -> list[Row]:
    """Return rows whose texts have about `size` bytes."""
    count = size // 150
    choices = [dice.integers(0, top, count).tolist() for top in (1 << 62, 7, 40_000, 6, 5000, 20, 2000, 3, 500, 100)]
    rows: list[Row] = []
    for rest in zip(*choices, strict=True):
        identity, event, user, country, item, status, took, agent, whole, part = rest
        words = EVENTS[event].encode(), user, PATHS[country].encode(), item, 200 if status else 404, took
        value = TEXT % (identity, *words, AGENTS[agent].encode(), whole, part)
        rows.append((b"user-%05d" % user, value))
        size -= len(value) + 20
        if size <= 0:
            break
    return rows


def random_rows(dice: np.random.Generator, key_size: int, value_size: int, count: int) -> list[Row]:
    """Return rows of random bytes."""
    size = key_size + value_size
    data = dice.bytes(size * count)
    starts = range(0, len(data), size)
    return [(data[start : start + key_size], data[start + key_size : start + size]) for start in starts]


def times_of(dice: np.random.Generator, number: int, count: int) -> list[int]:
    """Return the ascending timestamps of an entry, given its number in the file."""
    deltas = np.sort(dice.integers(0, LAST_DELTA_MS, count))
    found: list[int] = (deltas + FIRST_TIMESTAMP_MS + number * BATCH_MS).tolist()
    return found


def batch(codec: CompressionCodec, base_offset: int, times: Sequence[int], rows: Sequence[Row]) -> Entries:
    """Return a compressed batch of magic 2."""
    records = b"".join(_record(number, times, row) for number, row in enumerate(rows))
    payload = compress(codec, records)
    size, last = HEADER.size - SIZE_FROM + len(payload), len(rows) - 1
    rest = (last, times[0], times[-1], *NO_PRODUCER, len(rows))
    covered = HEADER.pack(base_offset, size, 0, 2, 0, codec, *rest)[CRC_FROM:] + payload
    crc = google_crc32c.value(covered)
    data = HEADER.pack(base_offset, size, 0, 2, crc, codec, *rest)[:CRC_FROM] + covered
    return _one(data, crc, HEADER.size + len(records), columns(base_offset, times, rows))


def _one(data: bytes, crc: int, uncompressed: int, inside: Columns) -> Entries:
    numbers = [np.array([each], np.int64) for each in (len(data), crc, inside.offsets[-1], inside.timestamps[-1])]
    return Entries(data, *numbers, inside, uncompressed)


def columns(base_offset: int, times: Sequence[int], rows: Sequence[Row]) -> Columns:
    """Return the columns that the checksum covers."""
    return Columns(
        np.arange(base_offset, base_offset + len(rows)),
        np.array(times, np.int64),
        np.array([-1 if key is None else len(key) for key, _ in rows], np.int64),
        np.array([len(value) for _, value in rows], np.int64),
        np.array([edges_of(key, value) for key, value in rows], np.int64),
        np.zeros(len(rows), np.int64),
    )


def _record(number: int, times: Sequence[int], row: Row) -> bytes:
    key, value = row
    start = b"\0" + VARINTS[times[number] - times[0]] + VARINTS[number]
    sized_key = varint(-1) if key is None else VARINTS[len(key)] + key
    body = start + sized_key + VARINTS[len(value)] + value + b"\0"
    return VARINTS[len(body)] + body


def message(offset: int, timestamp: int, row: Row, codec: CompressionCodec = CompressionCodec.NONE) -> bytes:
    """Return a message of magic 1; with a codec, a wrapper."""
    key, value = row
    sized_key = b"\xff\xff\xff\xff" if key is None else len(key).to_bytes(4, "big") + key
    rest = sized_key + len(value).to_bytes(4, "big") + value
    size = MESSAGE.size - SIZE_FROM + len(rest)
    head = MESSAGE.pack(offset, size, 0, 1, codec, timestamp)
    crc = zlib.crc32(head[MESSAGE_CRC_FROM:] + rest)
    return head[:SIZE_FROM] + crc.to_bytes(4, "big") + head[MESSAGE_CRC_FROM:] + rest


def messages(base_offset: int, times: Sequence[int], rows: Sequence[Row]) -> Entries:
    """Return one plain message per row."""
    pairs = enumerate(zip(times, rows, strict=True), base_offset)
    made = [message(offset, time, row) for offset, (time, row) in pairs]
    inside, data = columns(base_offset, times, rows), b"".join(made)
    crcs = np.array([crc_of(each) for each in made], np.int64)
    sizes = np.array([len(each) for each in made], np.int64)
    return Entries(data, sizes, crcs, inside.offsets, inside.timestamps, inside, len(data))


def wrapper(codec: CompressionCodec, base_offset: int, times: Sequence[int], rows: Sequence[Row]) -> Entries:
    """Return a compressed message with one inner message per row, with offsets from 0."""
    pairs = enumerate(zip(times, rows, strict=True))
    inner = b"".join(message(number, time, row) for number, (time, row) in pairs)
    payload = compress(codec, inner)
    data = message(base_offset + len(rows) - 1, times[-1], (None, payload), codec)
    return _one(data, crc_of(data), len(inner), columns(base_offset, times, rows))


def crc_of(data: bytes) -> int:
    """Return the CRC of a message."""
    return int.from_bytes(data[SIZE_FROM:MESSAGE_CRC_FROM], "big")
