"""Compressed containers of every kind that brokers read: the kernel reads the records in each.

The fallback decoder takes 300 times as long, and is for entries in which something is wrong.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

pytest.importorskip("pyarrow")

import cramjam
import lz4.frame
import pyarrow as pa
import zstandard
from helpers.scans import segment_directory

from seglog_format import open_partition
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import FormatError
from seglog_format.log.scanning import SegmentSource
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COUNT: Final = 50
GZIP, LZ4, SNAPPY, ZSTD = CompressionCodec.GZIP, CompressionCodec.LZ4, CompressionCodec.SNAPPY, CompressionCodec.ZSTD
Pack: TypeAlias = "Callable[[bytes], bytes]"


def halves(data: bytes) -> tuple[bytes, bytes]:
    return data[: len(data) // 2], data[len(data) // 2 :]


def gzip_with(flag: int, field: bytes) -> Pack:
    """Return a member with an optional field in its header."""

    def pack(data: bytes) -> bytes:
        plain = gzip.compress(data)
        return plain[:3] + bytes([flag]) + plain[4:10] + field + plain[10:]

    return pack


def gzip_with_header_checksum(data: bytes) -> bytes:
    plain = gzip.compress(data)
    header = plain[:3] + b"\x02" + plain[4:10]
    return header + struct.pack("<H", zlib.crc32(header) & 0xFFFF) + plain[10:]


def lz4_frame(**options: bool) -> Pack:
    return lambda data: lz4.frame.compress(data, block_linked=False, **options)


def xerial(*blocks: bytes) -> bytes:
    sized = (struct.pack(">i", len(block)) + block for block in blocks)
    return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(sized)


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def wide_zstd(data: bytes) -> bytes:
    """Return a frame of no stated size with a window of 128 MB."""
    options = zstandard.ZstdCompressionParameters.from_level(3, window_log=27, write_content_size=False)
    stream = zstandard.ZstdCompressor(compression_params=options).compressobj()
    return stream.compress(data) + stream.flush()


SKIPPABLE: Final = struct.pack("<II", 0x184D2A50, 4) + b"skip"
CONTAINERS: Final[dict[str, tuple[CompressionCodec, Pack]]] = {
    "lz4 with block checksums": (LZ4, lz4_frame(block_checksum=True)),
    "lz4 with both checksums": (LZ4, lz4_frame(block_checksum=True, content_checksum=True)),
    "lz4 with its size": (LZ4, lz4_frame(store_size=True)),
    "lz4 with trailing bytes": (LZ4, lambda data: lz4_frame()(data) + b"more"),
    "gzip with a file name": (GZIP, gzip_with(8, b"records\0")),
    "gzip with an extra field": (GZIP, gzip_with(4, b"\2\0ab")),
    "gzip with a header checksum": (GZIP, gzip_with_header_checksum),
    "gzip of two members": (GZIP, lambda data: b"".join(map(gzip.compress, halves(data)))),
    "gzip with trailing zeros": (GZIP, lambda data: gzip.compress(data) + bytes(8)),
    "snappy, one raw block": (SNAPPY, raw_snappy),
    "snappy, xerial": (SNAPPY, lambda data: xerial(*map(raw_snappy, halves(data)))),
    "snappy, two xerial headers": (SNAPPY, lambda data: b"".join(xerial(raw_snappy(each)) for each in halves(data))),
    "snappy, an empty block": (SNAPPY, lambda data: xerial(raw_snappy(data), raw_snappy(b""))),
    "zstd of two frames": (ZSTD, lambda data: b"".join(map(zstandard.compress, halves(data)))),
    "zstd behind a skippable frame": (ZSTD, lambda data: SKIPPABLE + zstandard.compress(data)),
    "zstd before a skippable frame": (ZSTD, lambda data: zstandard.compress(data) + SKIPPABLE),
    "zstd with a wide window": (ZSTD, wide_zstd),
}


def packed(plain: bytes, codec: CompressionCodec, pack: Pack) -> bytes:
    """Return an uncompressed batch with its records in a container."""
    made = bytearray(plain[:61] + pack(plain[61:]))
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">h", made, 21, codec)
    struct.pack_into(">I", made, 17, crc32c(made[21:]))
    return bytes(made)


def batch_in(name: str, base_offset: int) -> bytes:
    """Return a batch whose records are in one of the containers."""
    records = [new_record(key=b"key", value=b"value %d" % number, timestamp_ms=number) for number in range(COUNT)]
    return packed(encode_batch(build_batch(records, base_offset=base_offset)), *CONTAINERS[name])


def rows(path: Path) -> list[tuple[Any, ...]]:
    with open_partition(path) as partition:
        table = partition.scan(["offset", "timestamp", "key", "value"]).read_all()
    table = table.set_column(1, "timestamp", table.column("timestamp").cast(pa.int64()))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the entries that were left to the fallback decoder."""
    found: list[int] = []
    fallback = SegmentSource.fallback

    def counted(self: SegmentSource, position: int, previous: int, floor: int) -> Any:
        found.append(position)
        return fallback(self, position, previous, floor)

    monkeypatch.setattr(SegmentSource, "fallback", counted)
    return found


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_kernel_reads_what_a_library_decompressed(name: str, tmp_path: Path, fallbacks: list[int]) -> None:
    data = b"".join(batch_in(name, base_offset) for base_offset in range(0, 4 * COUNT, COUNT))
    wanted = [(at, at % COUNT, b"key", b"value %d" % (at % COUNT)) for at in range(4 * COUNT)]
    assert rows(segment_directory(tmp_path / "t-0", data)) == wanted
    assert set(fallbacks) <= {len(data)}, "only the end of the log is for the fallback"


def test_a_container_that_outgrows_the_arena(tmp_path: Path, fallbacks: list[int]) -> None:
    values = [bytes(3 << 20), bytes(12 << 20), b"small"]
    plain = [encode_batch(build_batch([new_record(value=each)], base_offset=at)) for at, each in enumerate(values)]
    data = b"".join(packed(each, *CONTAINERS["gzip of two members"]) for each in plain)
    assert [row[3] for row in rows(segment_directory(tmp_path / "t-0", data))] == values
    assert set(fallbacks) <= {len(data)}


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_in_such_a_container(magic: int, tmp_path: Path, fallbacks: list[int]) -> None:
    messages = [new_record(value=b"value %d" % number, timestamp_ms=number) for number in range(COUNT)]
    entry = build_message_entry(messages, magic=magic, base_offset=0, codec=GZIP)
    plain = encode_batch(entry)
    start = plain.index(b"\x1f\x8b")
    value = CONTAINERS["gzip with a file name"][1](gzip.decompress(plain[start:]))
    made = bytearray(plain[: start - 4] + struct.pack(">i", len(value)) + value)
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">I", made, 12, crc32(bytes(made[16:])))
    found = rows(segment_directory(tmp_path / "t-0", bytes(made)))
    assert [row[3] for row in found] == [b"value %d" % number for number in range(COUNT)]
    assert set(fallbacks) <= {len(made)}


@pytest.mark.parametrize("at", [65, 100, -1])
def test_a_damaged_container_is_for_the_fallback(at: int, tmp_path: Path, fallbacks: list[int]) -> None:
    data = bytearray(batch_in("lz4 with block checksums", 0))
    data[at] ^= 1
    path = segment_directory(tmp_path / "t-0", bytes(data))
    with pytest.raises(FormatError, match="SEG-BAT-003"):
        rows(path)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    with pytest.raises(FormatError, match="SEG-COD"):
        rows(segment_directory(tmp_path / "u-0", bytes(data)))
    assert fallbacks
