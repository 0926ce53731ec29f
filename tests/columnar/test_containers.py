"""Compressed containers that are not the plain kind: at most a library decompresses them; the kernel reads the records.

The fallback decoder takes 300 times as long. The kernel verifies block checksums of lz4 itself.
"""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("numba")

import lz4.frame
import zstandard
from helpers.scans import segment_directory

from seglog_format import open_partition
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.compression import decompress
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import FormatError, Location
from seglog_format.log.segment_source import SegmentSource
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from pathlib import Path

COUNT: Final = 50
GZIP, LZ4, ZSTD = CompressionCodec.GZIP, CompressionCodec.LZ4, CompressionCodec.ZSTD


def halves(data: bytes) -> tuple[bytes, bytes]:
    return data[: len(data) // 2], data[len(data) // 2 :]


def named_gzip(data: bytes) -> bytes:
    """A member whose header has a file name."""
    plain = gzip.compress(data)
    return plain[:3] + b"\x08" + plain[4:10] + b"records\0" + plain[10:]


CONTAINERS: Final = {
    "lz4 with block checksums": (LZ4, lambda data: lz4.frame.compress(data, block_linked=False, block_checksum=True)),
    "lz4 with both checksums": (
        LZ4,
        lambda data: lz4.frame.compress(data, block_linked=False, block_checksum=True, content_checksum=True),
    ),
    "lz4 with trailing bytes": (LZ4, lambda data: lz4.frame.compress(data, block_linked=False) + b"more"),
    "gzip with a file name": (GZIP, named_gzip),
    "gzip of two members": (GZIP, lambda data: b"".join(map(gzip.compress, halves(data)))),
    "zstd of two frames": (ZSTD, lambda data: b"".join(zstandard.compress(half) for half in halves(data))),
    "zstd behind a skippable frame": (
        ZSTD,
        lambda data: struct.pack("<II", 0x184D2A50, 4) + b"skip" + zstandard.compress(data),
    ),
}


def batch_in(name: str, base_offset: int) -> bytes:
    """A batch whose records are in one of the containers."""
    codec, pack = CONTAINERS[name]
    records = [new_record(key=b"key", value=b"value %d" % number, timestamp_ms=number) for number in range(COUNT)]
    plain = encode_batch(build_batch(records, base_offset=base_offset))
    made = bytearray(plain[:61] + pack(plain[61:]))
    struct.pack_into(">i", made, 8, len(made) - 12)
    struct.pack_into(">h", made, 21, codec)
    struct.pack_into(">I", made, 17, crc32c(made[21:]))
    return bytes(made)


def rows(path: Path) -> list[tuple[Any, ...]]:
    with open_partition(path) as partition:
        table = partition.scan(["offset", "timestamp", "key", "value"]).read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the entries that were left to the fallback decoder."""
    found: list[int] = []
    judge = SegmentSource.judge

    def counted(self: SegmentSource, position: int, previous: int, floor: int) -> Any:
        found.append(position)
        return judge(self, position, previous, floor)

    monkeypatch.setattr(SegmentSource, "judge", counted)
    return found


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_kernel_reads_what_a_library_decompressed(name: str, tmp_path: Path, fallbacks: list[int]) -> None:
    data = b"".join(batch_in(name, base_offset) for base_offset in range(0, 4 * COUNT, COUNT))
    codec, pack = CONTAINERS[name]
    try:
        decompress(codec, pack(b"records" * 50), magic=2, at=Location())
    except FormatError:
        pytest.skip("brokers refuse this container, and so do we")
    found = rows(segment_directory(tmp_path / "t-0", data))
    assert [row[0] for row in found] == list(range(4 * COUNT))
    assert found[COUNT + 3] == (COUNT + 3, found[COUNT + 3][1], b"key", b"value 3")
    assert set(fallbacks) <= {len(data)}, "only the end of the log is for the fallback"


def test_a_container_that_outgrows_the_arena(tmp_path: Path, fallbacks: list[int]) -> None:
    values = [bytes(3 << 20), bytes(12 << 20), b"small"]
    data = b""
    for offset, value in enumerate(values):
        plain = encode_batch(build_batch([new_record(value=value, timestamp_ms=1)], base_offset=offset))
        made = bytearray(plain[:61] + lz4.frame.compress(plain[61:], block_linked=False, block_checksum=True))
        struct.pack_into(">i", made, 8, len(made) - 12)
        struct.pack_into(">h", made, 21, LZ4)
        struct.pack_into(">I", made, 17, crc32c(made[21:]))
        data += bytes(made)
    assert [row[3] for row in rows(segment_directory(tmp_path / "t-0", data))] == values
    assert set(fallbacks) <= {len(data)}


@pytest.mark.parametrize("magic", [0, 1])
def test_wrappers_in_such_a_container(magic: int, tmp_path: Path, fallbacks: list[int]) -> None:
    messages = [new_record(value=b"value %d" % number, timestamp_ms=number) for number in range(COUNT)]
    entry = build_message_entry(messages, magic=magic, base_offset=0, codec=GZIP)
    plain = encode_batch(entry)
    start = plain.index(b"\x1f\x8b")
    value = named_gzip(gzip.decompress(plain[start:]))
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
