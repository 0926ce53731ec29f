"""Decompression bombs of 512 MiB in a few kilobytes or megabytes, for tests.

``python tests/helpers/bombs.py NAME LIMIT`` decompresses one under a limit and prints what came of it, and by how many
bytes the memory of the process grew at most. A process of its own, because the high-water mark never falls.
"""

from __future__ import annotations

import json
import resource
import sys
import zlib
from typing import TYPE_CHECKING

import cramjam
import lz4.block

MEBIBYTE = 2**20
SIZE = 512 * MEBIBYTE

if TYPE_CHECKING:
    from collections.abc import Callable

Bomb = tuple[int, bytes]


def gzip_bomb() -> Bomb:
    """Return a mebibyte of zeros ends on a byte boundary after a full flush, so its coding can be repeated."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = deflater.compress(bytes(MEBIBYTE)) + deflater.flush(zlib.Z_FULL_FLUSH)
    header = bytes.fromhex("1f8b08000000000000ff")
    return 1, header + piece * (SIZE // MEBIBYTE) + b"\x03\x00" + bytes(8)


def gzip_members() -> Bomb:
    return 1, zlib.compress(bytes(MEBIBYTE), 9, 31) * (SIZE // MEBIBYTE)


def snappy_block(size: int) -> bytes:
    """One zero byte, then copies of 64 bytes from one byte back."""
    groups = bytearray()
    left = size
    while left > 0x7F:
        groups.append(left & 0x7F | 0x80)
        left >>= 7
    groups.append(left)
    whole, rest = divmod(size - 1, 64)
    copies = b"\xfe\x01\x00" * whole + (bytes([(rest - 1) << 2 | 2, 1, 0]) if rest else b"")
    return bytes(groups) + b"\x00\x00" + copies


def bare_snappy_bomb() -> Bomb:
    return 2, snappy_block(SIZE)


def xerial_bomb() -> Bomb:
    block = bytes(cramjam.snappy.compress_raw(bytes(MEBIBYTE)))
    header = bytes.fromhex("82534e41505059000000000100000001")
    return 2, header + (len(block).to_bytes(4, "big") + block) * (SIZE // MEBIBYTE)


def lz4_bomb() -> Bomb:
    block = lz4.block.compress(bytes(4 * MEBIBYTE), store_size=False)
    frame = bytes.fromhex("04224d18607073")
    return 3, frame + (len(block).to_bytes(4, "little") + block) * (SIZE // MEBIBYTE // 4) + bytes(4)


def zstd_blocks() -> bytes:
    """Blocks that repeat one byte 131072 times, the last one marked."""
    count = SIZE // 2**17
    more, last = ((2**17 << 3 | 1 << 1 | mark).to_bytes(3, "little") + b"\0" for mark in (0, 1))
    return more * (count - 1) + last


def zstd_bomb() -> Bomb:
    return 4, bytes.fromhex("28b52ffd0058") + zstd_blocks()


def zstd_wide_bomb() -> Bomb:
    """Return a window of 128 MiB, the most that brokers read."""
    return 4, bytes.fromhex("28b52ffd0088") + zstd_blocks()


def zstd_sized_bomb() -> Bomb:
    return 4, bytes.fromhex("28b52ffda0") + SIZE.to_bytes(4, "little") + zstd_blocks()


def zstd_frames() -> Bomb:
    frame = bytes.fromhex("28b52ffd0058") + (2**17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return 4, frame * (SIZE // 2**17)


BOMBS: dict[str, Callable[[], Bomb]] = {
    "gzip": gzip_bomb,
    "gzip-members": gzip_members,
    "snappy": bare_snappy_bomb,
    "snappy-xerial": xerial_bomb,
    "lz4": lz4_bomb,
    "zstd": zstd_bomb,
    "zstd-wide": zstd_wide_bomb,
    "zstd-sized": zstd_sized_bomb,
    "zstd-frames": zstd_frames,
}


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(name: str, limit: int) -> None:
    from seglog_format.codec.compression import decompress
    from seglog_format.errors import FormatError, Location

    codec_id, data = BOMBS[name]()
    for warm_up in (1, 2, 3, 4):
        try:
            decompress(warm_up, b"", magic=2, at=Location(), limit=limit)
        except FormatError:
            continue
    before = peak_bytes()
    try:
        outcome, requirement = str(len(decompress(codec_id, data, magic=2, at=Location(), limit=limit))), ""
    except FormatError as error:
        outcome, requirement = type(error).__name__, error.requirements[0]
    print(json.dumps({"outcome": outcome, "requirement": requirement, "growth": peak_bytes() - before}))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
