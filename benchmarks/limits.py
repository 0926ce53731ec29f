"""Speed limits of any reader on this machine: copying memory, reading it, checksums, and the codecs alone."""

from __future__ import annotations

import gzip
import struct
import time
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import cramjam
import google_crc32c
import lz4.frame
import numpy as np
import zstandard
from templates import HEADER

try:
    from isal import igzip, isal_zlib
except ImportError:  # some processors have no wheel
    igzip, isal_zlib = gzip, zlib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datasets import DataSet

CHUNK: Final = 16_384
WRAPPED_FROM: Final = 34
"""Position at which the payload of a wrapper of magic 1 without a key begins."""
XERIAL_HEADER: Final = 16
MIN_SECONDS: Final = 1.5
"""Minimum time to measure a limit: if the contenders had more time, they could exceed it by luck."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Megabytes per second of the fastest way, and of each way by name."""

    best: float
    ways: dict[str, float]


def timed(work: Callable[[], object], size: int, rounds: int) -> float:
    """Return the megabytes per second of the best round; rounds are repeated for at least `MIN_SECONDS`."""
    seconds: list[float] = []
    while len(seconds) <= rounds or sum(seconds) < MIN_SECONDS:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return size / 1e6 / min(seconds[1:])


def _limit(ways: dict[str, Callable[[], object]], size: int, rounds: int) -> Limit:
    speeds = {name: round(timed(way, size, rounds), 1) for name, way in ways.items()}
    return Limit(max(speeds.values()), speeds)


def memory_limits(data: DataSet, rounds: int) -> dict[str, Limit]:
    """Measure the limits for an uncompressed log: ``memcpy``, ``read`` from the page cache, ``crc`` and ``crc32``.

    Args:
        data: set with the bytes to use.
        rounds: how many; the best one counts.
    """
    whole = data.path.read_bytes()
    array = np.asarray(np.memmap(data.path, np.uint8, "r"))
    words, target = array[: len(array) // 8 * 8].view(np.uint64), np.empty_like(array)
    pieces = [whole[start : start + CHUNK] for start in range(0, len(whole), CHUNK)]
    size = len(whole)
    castagnoli = {
        "google-crc32c, 16 KB": lambda: [google_crc32c.value(piece) for piece in pieces],
        "google-crc32c, whole": lambda: google_crc32c.value(whole),
    }
    ieee = {
        "zlib, 16 KB": lambda: [zlib.crc32(piece) for piece in pieces],
        "isal, 16 KB": lambda: [isal_zlib.crc32(piece) for piece in pieces],
    }
    reading = {
        "sum of 8-byte words": words.sum,
        "read() into the same buffer": lambda: data.path.open("rb").readinto(target),
    }
    return {
        "memcpy": _limit({"numpy copyto": lambda: np.copyto(target, array)}, size, rounds),
        "read": _limit(reading, size, rounds),
        "crc": _limit(castagnoli, size, rounds),
        "crc32": _limit(ieee, size, rounds),
    }


def codec_limit(data: DataSet, rounds: int) -> Limit:
    """Measure how fast every batch can be decompressed, in megabytes of log per second.

    Args:
        data: a compressed set.
        rounds: how many; the best one counts.
    """
    payloads = list(payloads_of(data.path.read_bytes()))
    found = [payload for _, payload in payloads]
    ways = {name: partial(_each, one_decompressor, found) for name, one_decompressor in wheels(payloads[0][0]).items()}
    return _limit(ways, data.size, rounds)


def _each(one_decompressor: Callable[[bytes], object], payloads: Sequence[bytes]) -> None:
    for payload in payloads:
        one_decompressor(payload)


def payloads_of(log: bytes) -> Iterable[tuple[int, bytes]]:
    """Yield the codec and the compressed records of each batch of a compressed set."""
    at = 0
    while at < len(log):
        end = at + 12 + struct.unpack_from(">i", log, at + 8)[0]
        magic = log[at + 16]
        codec = log[at + 22 if magic > 1 else at + 17] & 7
        yield codec, log[at + (HEADER.size if magic > 1 else WRAPPED_FROM) : end]
        at = end


def wheels(codec: int) -> dict[str, Callable[[bytes], object]]:
    """Return the decoders that pip installs, by name."""
    zstd = zstandard.ZstdDecompressor()
    known: dict[int, dict[str, Callable[[bytes], object]]] = {
        1: {"zlib": gzip.decompress, "isal": igzip.decompress, "cramjam": cramjam.gzip.decompress},
        2: {"cramjam": _xerial},
        3: {"lz4": lz4.frame.decompress, "cramjam": cramjam.lz4.decompress},
        4: {"zstandard": lambda data: zstd.decompressobj().decompress(data), "cramjam": cramjam.zstd.decompress},
    }
    return known[codec]


def _xerial(data: bytes) -> list[object]:
    at, found = XERIAL_HEADER, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        found.append(cramjam.snappy.decompress_raw(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found
