"""The bytes of a log, moved to other offsets and times, or with other letters and digits in keys and values.

Only what a change needs is touched: offsets are in no checksum; where a batch changes otherwise, its checksum is made
again. An entry that is cut at the end, zeros and a few last bytes stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.framing import MIN_ENTRY_SIZE
from seglog_format.layouts import RECORD_BATCH_HEADER_LAYOUT
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    MAGIC_POSITION,
    MESSAGE_ATTRIBUTES_POSITION,
    RECORD_BATCH_HEADER_SIZE,
    RECORD_BATCH_MAGIC,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD: Final = 12
"""Size of the offset and the size in front of an entry."""
CRC: Final = slice(17, 21)
CODECS: Final = 0b111
CONTROL: Final = 0b100000
TIMES: Final = tuple(map(RECORD_BATCH_HEADER_LAYOUT.position, ("base_timestamp_ms", "max_timestamp_ms")))
COUNT: Final = RECORD_BATCH_HEADER_LAYOUT.position("records_count")


class NotPlainError(Exception):
    """A log holds an entry whose bytes cannot be changed in the requested way."""


def _entries(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each entry begins and ends.

    Raises:
        NotPlainError: something follows that is neither an entry nor part of one.
    """
    at = 0
    while at + MAGIC_POSITION < len(data):
        size = int.from_bytes(data[at + 8 : at + HEAD], "big", signed=True)
        end = at + HEAD + size
        if not any(data[at:]) or (size >= MIN_ENTRY_SIZE and end > len(data)):
            return
        if size < MIN_ENTRY_SIZE or data[at + MAGIC_POSITION] > RECORD_BATCH_MAGIC:
            raise NotPlainError
        yield at, end
        at = end


def moved_log(data: bytes, offset_of: Callable[[int], int], later_ms: int = 0) -> bytes:
    """Return a log that begins at another offset, and at another time.

    Args:
        data: the log.
        offset_of: function that returns the offset for an offset of the log.
        later_ms: milliseconds that the batches are later.

    Raises:
        NotPlainError: offsets or times are inside of compressed bytes, or a checksum is wrong.
    """
    out = bytearray(data)
    for at, end in _entries(data):
        magic, offset = data[at + MAGIC_POSITION], int.from_bytes(data[at : at + 8], "big", signed=True)
        is_wrapper = magic < RECORD_BATCH_MAGIC and data[at + MESSAGE_ATTRIBUTES_POSITION] & CODECS
        if is_wrapper and (magic == 0 or offset == 0):  # absolute offsets inside: of magic 1 only below a wrapper at 0
            raise NotPlainError
        out[at : at + 8] = offset_of(offset).to_bytes(8, "big", signed=True)
        if later_ms:
            out[at:end] = _later(bytes(out[at:end]), later_ms)
    return bytes(out)


def _later(entry: bytes, later_ms: int) -> bytes:
    _check(entry)
    out = bytearray(entry)
    for at in TIMES:
        timestamp = int.from_bytes(entry[at : at + 8], "big", signed=True)
        if timestamp < 0:
            raise NotPlainError
        out[at : at + 8] = (timestamp + later_ms).to_bytes(8, "big", signed=True)
    return _sealed(out)


def with_other_letters(data: bytes, letters: bytes, checksums: dict[int, int]) -> bytes:
    """Return a log with other letters and digits in the keys, values and values of headers.

    Args:
        data: the log.
        letters: table for `bytes.translate`.
        checksums: gets the checksum of each changed batch, by that before.

    Raises:
        NotPlainError: an entry is no batch of data of magic 2 without compression, or is damaged.
    """
    out = bytearray(data)
    for at, end in _entries(data):
        entry = bytearray(data[at:end])
        _check(entry)
        if entry[ATTRIBUTES_POSITION + 1] & (CODECS | CONTROL):
            raise NotPlainError
        for start, stop in _payloads(entry):
            entry[start:stop] = entry[start:stop].translate(letters)
        out[at:end] = _sealed(entry)
        checksums[int.from_bytes(data[at:end][CRC], "big")] = int.from_bytes(out[at:end][CRC], "big")
    return bytes(out)


def _check(entry: bytes | bytearray) -> None:
    """Check that an entry is a batch of magic 2 whose checksum is right, so that a new one changes nothing else."""
    is_batch = entry[MAGIC_POSITION] == RECORD_BATCH_MAGIC and len(entry) >= RECORD_BATCH_HEADER_SIZE
    if not is_batch or crc32c(bytes(entry[ATTRIBUTES_POSITION:])) != int.from_bytes(entry[CRC], "big"):
        raise NotPlainError


def _sealed(entry: bytearray) -> bytes:
    entry[CRC] = crc32c(bytes(entry[ATTRIBUTES_POSITION:])).to_bytes(4, "big")
    return bytes(entry)


def _payloads(batch: bytearray) -> Iterator[tuple[int, int]]:
    """Yield where the keys, the values and the values of headers of a batch begin and end."""
    count = int.from_bytes(batch[COUNT : COUNT + 4], "big", signed=True)
    at = RECORD_BATCH_HEADER_SIZE
    try:
        for _ in range(count):
            _, at = _varint(batch, at)
            at += 1
            for _ in range(2):
                _, at = _varint(batch, at)
            for _ in range(2):
                start, at = _field(batch, at)
                yield start, at
            headers, at = _varint(batch, at)
            for _ in range(headers):
                _, at = _field(batch, at)
                start, at = _field(batch, at)
                yield start, at
    except IndexError:
        raise NotPlainError from None
    if at != len(batch):
        raise NotPlainError


def _field(batch: bytearray, at: int) -> tuple[int, int]:
    """Return where the bytes of a key or a value begin and end; null has none."""
    size, start = _varint(batch, at)
    return start, start + max(size, 0)


def _varint(batch: bytearray, at: int) -> tuple[int, int]:
    """Return a zigzag number, and where it ends."""
    value = shift = 0
    while True:
        value |= (batch[at] & 0x7F) << shift
        shift += 7
        at += 1
        if batch[at - 1] < 0x80:  # noqa: PLR2004 - the bit for more
            return (value >> 1) ^ -(value & 1), at
