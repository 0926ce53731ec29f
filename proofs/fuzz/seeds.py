"""First inputs for fuzzing: byte vectors, small logs of every magic and codec, logs of brokers, and blocks."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import cramjam
import lz4.block
import zstandard

from proofs.fuzz.random_logs import random_log
from proofs.fuzz.targets import SEALED, TARGETS
from proofs.unpacking import unpack_archive
from seglog_format import CompressionCodec, build_batch, build_message_entry, encode_batch, new_record, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
MAX_SIZE: Final = 1500
"""Largest size of a log as an input; longer ones are cut after an entry."""
RECORDS: Final = 61
"""Position of the records in a batch."""
WRAPPED: Final = 26
"""Position of the value in a message of magic 0 without a key."""
LOG_TARGETS: Final = tuple(map(TARGETS.index, ("scan", "objects", "verify", "recover", "entries_or_rows")))


def seeds() -> Iterator[bytes]:
    """Yield every input; always the same ones."""
    for number, log in enumerate(logs()):
        for target in LOG_TARGETS:
            yield bytes([target | SEALED | (number % 8) << 5]) + log
    yield from blocks()
    dice = random.Random(1)
    for number in range(10):
        yield bytes([TARGETS.index("entries_or_rows") | 0x10 | number % 5 << 5]) + dice.randbytes(90)


def logs() -> Iterator[bytes]:
    """Yield small logs."""
    vectors = json.loads((FIXTURES / "vectors" / "vectors.json").read_text(encoding="utf-8"))
    yield from (bytes.fromhex(entry["hex"]) for entry in vectors.values() if len(entry["hex"]) <= 2 * MAX_SIZE)
    yield from made_logs()
    for seed in range(12):
        yield cut(random_log(seed).data)
    with tempfile.TemporaryDirectory() as scratch:
        for archive in sorted(FIXTURES.glob("kafka-*/*/files.tar.gz")):
            target = Path(scratch) / archive.parent.parent.name / archive.parent.name
            unpack_archive(archive, target)
            for log in sorted(target.rglob("*.log"))[:2]:
                yield cut(log.read_bytes())


def cut(data: bytes) -> bytes:
    """Return the first entries; only the first one if it is long."""
    end = 0
    for frame in walk(data):
        if frame.end > MAX_SIZE:
            break
        end = frame.end
    return data[: end or MAX_SIZE]


def made_logs() -> Iterator[bytes]:
    """Yield one entry of each magic and codec, each followed by another."""
    records = [
        new_record(
            key=b"key", value=b"a value of some length " * 3, timestamp_ms=5, headers=((b"h", b"v"), (b"", None))
        ),
        new_record(key=None, value=b"x" * 90, timestamp_ms=300),
        new_record(key=b"", value=None, timestamp_ms=1 << 40),
    ]
    messages = [
        new_record(key=b"key", value=b"a value " * 9, timestamp_ms=5),
        new_record(key=b"x" * 40, value=b""),
        new_record(value=None),
    ]
    after = encode_batch(build_batch(records[:1], base_offset=6))
    for codec in CompressionCodec:
        yield encode_batch(build_batch(records, base_offset=3, codec=codec)) + after
        for magic in (0, 1) if codec is not CompressionCodec.ZSTD else ():
            part = messages if codec else messages[:1]
            yield encode_batch(build_message_entry(part, magic=magic, base_offset=3, codec=codec)) + after


def contents() -> Iterator[bytes]:
    """Yield contents of blocks: literals and matches of many sizes and distances."""
    dice = random.Random(2)
    yield from (b"", b"x", b"abc" * 40, b"y" * 300)
    for distance in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 64, 70):
        yield dice.randbytes(distance) * 5 + dice.randbytes(14) + dice.randbytes(distance) * 3 + b"the end of it all"
    for size in (14, 15, 16, 59, 60, 61, 64, 200):
        yield dice.randbytes(size) + b"0123456789abcdef" * 6 + dice.randbytes(size)


def stored(codec: CompressionCodec, content: bytes, *, magic: int = 2) -> bytes:
    """Return the compressed part of an entry with one record."""
    record = new_record(value=content)
    if magic < 2:  # noqa: PLR2004 - the format
        return encode_batch(build_message_entry([record], magic=magic, codec=codec))[WRAPPED:]
    return encode_batch(build_batch([record], codec=codec))[RECORDS:]


def blocks() -> Iterator[bytes]:
    """Yield compressed bytes for the targets of codecs."""
    target_number = {name: number for number, name in enumerate(TARGETS)}
    zstd, checked = zstandard.ZstdCompressor(), zstandard.ZstdCompressor(write_checksum=True)
    for number, content in enumerate(contents()):
        spot = (number & 3) << 4
        yield bytes([target_number["lz4"] | spot]) + lz4.block.compress(content, store_size=False)
        yield bytes([target_number["snappy"] | spot]) + bytes(cramjam.snappy.compress_raw(content))
        if number % 3 == 0:
            yield bytes([target_number["lz4"] | 0x40]) + stored(CompressionCodec.LZ4, content)
            yield bytes([target_number["lz4"] | 0xC0]) + stored(CompressionCodec.LZ4, content, magic=0)
            yield bytes([target_number["snappy"]]) + stored(CompressionCodec.SNAPPY, content)
            yield bytes([target_number["libraries"] | 0x10]) + stored(CompressionCodec.GZIP, content)
            yield bytes([target_number["libraries"]]) + stored(CompressionCodec.ZSTD, content)
            yield bytes([target_number["libraries"]]) + zstd.compress(content)
            yield bytes([target_number["libraries"]]) + checked.compress(content)
