"""Hostile bytes get the same verdict from the engine and from the reference, and never more than that."""

from __future__ import annotations

import os
import random
import zlib
from typing import TYPE_CHECKING

import google_crc32c
import pytest

pytest.importorskip("pyarrow")

from helpers.scans import expected, scanned, segment_directory
from helpers.walking import each_of

from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.log.partition import open_partition
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODECS = tuple(CompressionCodec)
RECORDS = [
    new_record(key=b"key", value=b"a value of some length", timestamp_ms=5, headers=((b"h", b"v"), (b"", None))),
    new_record(key=None, value=b"x" * 40, timestamp_ms=300),
    new_record(key=b"", value=None, timestamp_ms=1 << 40),
]
MESSAGES = [
    new_record(key=b"key", value=b"a value", timestamp_ms=5),
    new_record(value=None),
    new_record(key=b"", value=b"x" * 40),
]
INPUTS = {
    f"batch-{codec.label}": encode_batch(build_batch(RECORDS, base_offset=3, codec=codec)) for codec in CODECS
} | {
    f"magic-{magic}-{codec.label}": encode_batch(
        build_message_entry(MESSAGES[: 3 if codec else 1], magic=magic, base_offset=3, codec=codec)
    )
    for magic in (0, 1)
    for codec in CODECS[:4]
}
FULL = bool(os.environ.get("SEGLOG_COLUMNAR_FULL"))
"""All changes rather than a fifth of them: a few minutes."""
BATCH_CRC_FROM = 21
MESSAGE_CRC_FROM = 16


def with_right_checksum(data: bytes) -> bytes:
    """Return the first entry with the checksum that it should have: what comes behind is looked at then."""
    if data[16] == 2:
        return data[:17] + google_crc32c.value(data[BATCH_CRC_FROM:]).to_bytes(4) + data[BATCH_CRC_FROM:]
    return data[:12] + zlib.crc32(data[MESSAGE_CRC_FROM:]).to_bytes(4) + data[MESSAGE_CRC_FROM:]


def changes(data: bytes) -> Iterator[bytes]:
    """Cuts, with and without a size that fits them; flipped bits and extreme bytes."""
    dice = random.Random(len(data))  # noqa: S311
    for size in range(len(data)):
        yield data[:size]
        if size > 26:
            yield with_right_checksum(data[:8] + (size - 12).to_bytes(4) + data[12:size])
    for position, byte in enumerate(data):
        for value in (byte ^ 1 << dice.randrange(8), dice.choice((0x00, 0x7F, 0x80, 0xFF))):
            changed = data[:position] + bytes([value]) + data[position + 1 :]
            yield changed
            yield with_right_checksum(changed)


@pytest.mark.filterwarnings(
    "ignore:.*(nothing readable|hidden entries|overlapping entries|control bit without control records)"
    ":seglog_format.errors.MissingOffsetsWarning"
)  # the only segment is damaged
@each_of("name", INPUTS)
def test_every_change_has_the_same_verdict(name: str, tmp_path: Path) -> None:
    after = encode_batch(build_batch(RECORDS, base_offset=6))
    every = 1 if FULL else 5
    for number, changed in enumerate(changes(INPUTS[name])):
        if number % every == 0:
            assert_same_verdict(tmp_path, changed + after if number % 4 == 0 else changed)


def assert_same_verdict(directory: Path, data: bytes) -> None:
    with open_partition(segment_directory(directory / "hostile-0", data)) as partition:
        wanted = expected(partition)
        assert scanned(partition, batch_rows=16) == wanted, data.hex()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("base_offset", [10, 500])
def test_an_entry_whose_end_lies_before_its_start(base_offset: int, isolation: str, tmp_path: Path) -> None:
    """By its header it ends at 5; with ``read_committed`` reading ends there, before an entry that starts later."""
    first = encode_batch(build_batch([new_record(value=b"first")], base_offset=0))
    second = bytearray(encode_batch(build_batch([new_record(value=b"second")], base_offset=base_offset)))
    second[23:27] = (5 - base_offset).to_bytes(4, "big", signed=True)
    directory = segment_directory(tmp_path / "odd-0", first + with_right_checksum(bytes(second)))
    with open_partition(directory) as partition:
        wanted = expected(partition, isolation=isolation)
        assert scanned(partition, isolation=isolation) == wanted
        assert scanned(partition, isolation=isolation, layout="binary") == wanted
