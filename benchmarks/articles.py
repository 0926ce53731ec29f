"""Claims that articles make about logs, each measured as a ratio on this machine."""

from __future__ import annotations

import mmap
import os
import random
import struct
import tempfile
import time
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from datasets import BUILD, INDEX_INTERVAL_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from datasets import DataSet

ENTRY: Final = struct.Struct(">ii")
BLOCK: Final = 65_536
RECORD: Final = 120
BATCH: Final = 16_384
WRITTEN: Final = 4 << 20
FLUSHED: Final = 256
LOOKUPS: Final = 2000


def measured(data: DataSet, rounds: int) -> list[dict[str, Any]]:
    """Measure every claim.

    Args:
        data: a log of small batches.
        rounds: number of rounds; the best one counts.
    """
    dice = random.Random(1)  # noqa: S311 - chance that repeats
    return [
        *_reads(data, dice, rounds),
        *_writes(rounds),
        _index_reads(data, dice, rounds),
        *_densities(data, dice, rounds),
    ]


def _best(work: Callable[[], object], rounds: int) -> float:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


Way = tuple[str, float]
"""The name of a way and its figure."""


def _claim(title: str, unit: str, first: Way, second: Way, **more: object) -> dict[str, Any]:
    """Return a claim: two figures, and the ratio of the second to the first."""
    ways = {name: float(f"{figure:.4g}") for name, figure in (first, second)}
    return {"claim": title, "unit": unit, "ways": ways, "ratio": float(f"{second[1] / first[1]:.3g}"), **more}


def _reads(data: DataSet, dice: random.Random, rounds: int) -> Iterable[dict[str, Any]]:
    """Yield sequential against random reads of 64 KB, from the page cache and, if it can be emptied, from the disk."""
    file = os.open(data.path, os.O_RDONLY)
    try:
        in_order = list(range(0, data.size - BLOCK, BLOCK))
        shuffled = dice.sample(in_order, len(in_order))
        for name, forget in (("in the page cache", False), ("not in the page cache", True)):
            if forget and not hasattr(os, "posix_fadvise"):
                continue
            seconds = [_read_seconds(file, starts, rounds, forget=forget) for starts in (in_order, shuffled)]
            yield _claim(
                f"sequential reads beat random ones, {name}",
                "seconds",
                ("sequential", seconds[0]),
                ("random", seconds[1]),
                blocks=len(in_order),
                blockBytes=BLOCK,
            )
    finally:
        os.close(file)


def _read_seconds(file: int, starts: list[int], rounds: int, *, forget: bool) -> float:
    found = []
    for _ in range(rounds):
        if forget:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        start = time.perf_counter()
        for offset_start in starts:
            os.pread(file, BLOCK, offset_start)
        found.append(time.perf_counter() - start)
    return min(found)


def _writes(rounds: int) -> Iterable[dict[str, Any]]:
    """Yield records written one by one against batches of them, without and with a flush after each."""
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        path = Path(name) / "log"
        for title, total, flush in (("without flushes", WRITTEN, False), ("flushed each", FLUSHED * RECORD, True)):
            batched = _write_seconds(path, BATCH, total, rounds, flush=flush)
            single = _write_seconds(path, RECORD, total, rounds, flush=flush)
            yield _claim(
                f"batches beat single writes, {title}",
                "seconds",
                ("batched", batched),
                ("single", single),
                recordBytes=RECORD,
                batchBytes=BATCH,
                totalBytes=total,
            )


def _write_seconds(path: Path, size: int, total: int, rounds: int, *, flush: bool) -> float:
    piece = bytes(size)

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            for _ in range(0, total, size):
                file.write(piece)
                if flush:
                    os.fdatasync(file.fileno())

    return _best(write, rounds)


def _index_reads(data: DataSet, dice: random.Random, rounds: int) -> dict[str, Any]:
    """Measure a binary search in a mapped index against one that reads each entry from the file."""
    path = data.path.with_suffix(".index")
    count, offsets = path.stat().st_size // ENTRY.size, [dice.randrange(data.records) for _ in range(LOOKUPS)]
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        ways = (
            lambda at: ENTRY.unpack_from(mapped, at * ENTRY.size),
            lambda at: ENTRY.unpack(os.pread(file.fileno(), ENTRY.size, at * ENTRY.size)),
        )
        seconds = [_best(lambda way=way: [_search(way, count, each) for each in offsets], rounds) for way in ways]  # type: ignore[misc]
    return _claim(
        "a mapped index beats a read one",
        "seconds a lookup",
        ("mapped", seconds[0] / LOOKUPS),
        ("read", seconds[1] / LOOKUPS),
        entries=count,
    )


def _search(entry: Callable[[int], tuple[int, int]], count: int, offset: int) -> int:
    """Return the position of the last entry at or below an offset; 0 if there is none."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if entry(middle)[0] <= offset:
            low = middle + 1
        else:
            high = middle
    return entry(low - 1)[1] if low else 0


def _densities(data: DataSet, dice: random.Random, rounds: int) -> Iterable[dict[str, Any]]:
    """Yield size and time of an index with an entry per interval of bytes, against one with an entry for each batch."""
    log = data.path.read_bytes()
    dense = _entries(log, 0)
    offsets = [dice.randrange(data.records) for _ in range(LOOKUPS)]
    for interval in (INDEX_INTERVAL_BYTES, INDEX_INTERVAL_BYTES * 16):
        sparse = _entries(log, interval)
        seconds = [
            _best(lambda kept=kept: [_found(log, kept, each) for each in offsets], rounds) / LOOKUPS  # type: ignore[misc]
            for kept in (dense, sparse)
        ]
        yield _claim(
            f"a sparse index is enough, an entry every {interval:,} bytes",
            "seconds a lookup",
            ("dense", seconds[0]),
            ("sparse", seconds[1]),
            denseBytes=len(dense[0]) * ENTRY.size,
            sparseBytes=len(sparse[0]) * ENTRY.size,
            logBytes=data.size,
        )


def _entries(log: bytes, interval: int) -> tuple[list[int], list[int]]:
    offsets, positions, at, indexed = [], [], 0, -1
    while at < len(log):
        if at - indexed > interval:
            offsets.append(int.from_bytes(log[at : at + 8], "big"))
            positions.append(at)
            indexed = at
        at += 12 + int.from_bytes(log[at + 8 : at + 12], "big")
    return offsets, positions


def _found(log: bytes, kept: tuple[list[int], list[int]], offset: int) -> int:
    """Return the position of the batch with an offset: look up the entry below, then walk from there."""
    entry = bisect_right(kept[0], offset) - 1
    at = kept[1][entry] if entry >= 0 else 0
    while int.from_bytes(log[at : at + 8], "big") + int.from_bytes(log[at + 23 : at + 27], "big") < offset:
        at += 12 + int.from_bytes(log[at + 8 : at + 12], "big")
    return at
