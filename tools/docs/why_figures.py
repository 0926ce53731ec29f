"""Measurements for the page about the design: ``python -m tools.docs.why_figures --report reports/why.json``.

Figures are counts of bytes or processor time where possible, which depend little on the load of the machine. Each time
is the median of several rounds, with the least and the most.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import socket
import struct
import sys
import tempfile
import time
from bisect import bisect_right
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from seglog_conformance.toolchains import child_processes

from proofs.report_facts import run_conditions, spread, write_report
from seglog_format import encode_columns, open_partition, rebuild_indexes, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPOSITORY: Final = Path(__file__).resolve().parents[2]
BUILD: Final = REPOSITORY / "build"
MIB: Final = 1 << 20
ENTRY_SIZE: Final = 8
INTERVAL_BYTES: Final = 4096
BLOCK: Final = 4096
RECORDS_A_BATCH: Final = 10
VALUE_SIZE: Final = 100
SEGMENTS: Final = 16
LOOKUPS: Final = 1000
COUNTS: Final = (100, 1000, 5000)


def log_bytes(size: int) -> bytes:
    """Return a log of small batches, of about `size` bytes."""
    rows = size // (VALUE_SIZE + 16)
    rows -= rows % RECORDS_A_BATCH
    dice = random.Random(1)  # noqa: S311 - contents that repeat
    values = [dice.randbytes(VALUE_SIZE) for _ in range(1000)]
    table = pa.table({"value": pa.array([values[row % 1000] for row in range(rows)], pa.binary())})
    return b"".join(encode_columns(table, counts=[RECORDS_A_BATCH] * (rows // RECORDS_A_BATCH)))


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of one round."""
    start = clock()
    work()
    return clock() - start


def rounded(seconds: Sequence[float]) -> dict[str, float]:
    """Return the spread of several rounds, to three digits."""
    return {name: float(f"{each:.3g}") for name, each in spread(seconds).items()}


def segments(directory: Path, size: int, rounds: int) -> dict[str, Any]:
    """Measure the removal of the oldest part: of a log in segments, and of a log in a single file."""
    part = bytes(size // SEGMENTS)
    whole = directory / "whole.log"
    whole.write_bytes(part * SEGMENTS)

    def rewrite() -> None:
        with whole.open("rb") as old, (directory / "new.log").open("wb") as new:
            old.seek(len(part))
            while piece := old.read(MIB):
                new.write(piece)
            os.fsync(new.fileno())

    seconds = []
    for number in range(rounds):
        oldest = directory / f"{number:020}.log"
        oldest.write_bytes(part)
        os.sync()
        seconds.append(timed(oldest.unlink))
    return {
        "logBytes": len(part) * SEGMENTS,
        "segments": SEGMENTS,
        "removeSeconds": rounded(seconds),
        "rewriteSeconds": rounded([timed(rewrite) for _ in range(rounds)]),
        "rewrittenBytes": len(part) * (SEGMENTS - 1),
    }


def index(directory: Path, log: bytes) -> dict[str, Any]:
    """Return the sizes of indexes, and the bytes of log that a lookup scans."""
    frames = [(frame.position, frame.header.last_offset) for frame in walk(log)]
    entries = offset_index(directory, log)
    records = frames[-1][1] + 1
    dice = random.Random(2)  # noqa: S311 - chance that repeats
    wanted = [dice.randrange(records) for _ in range(LOOKUPS)]
    ends = [last for _, last in frames]
    named = [offset for offset, _ in entries]
    passed = {"sparse": 0, "none": 0}
    for offset in wanted:
        found = frames[bisect_right(ends, offset - 1)][0]
        at = bisect_right(named, offset) - 1
        passed["none"] += found
        passed["sparse"] += found - (entries[at][1] if at >= 0 else 0)
    return {
        "logBytes": len(log),
        "batches": len(frames),
        "records": records,
        "lookups": LOOKUPS,
        "entries": len(entries),
        "sparseBytes": len(entries) * ENTRY_SIZE,
        "everyBatchBytes": len(frames) * ENTRY_SIZE,
        "everyRecordBytes": records * ENTRY_SIZE,
        "passedBytes": {name: round(total / LOOKUPS) for name, total in passed.items()},
    }


def offset_index(directory: Path, log: bytes) -> list[tuple[int, int]]:
    """Return offsets and positions in the sparse index of a log whose base offset is 0."""
    partition = directory / "indexed-0"
    partition.mkdir()
    (partition / f"{0:020}.log").write_bytes(log)
    [segment] = rebuild_indexes(partition, interval_bytes=INTERVAL_BYTES).segments()
    [data] = [each.data for each in segment.indexes if each.name.endswith(".index")]
    return list(struct.iter_unpack(">ii", data))


def sequential(path: Path, rounds: int) -> dict[str, Any]:
    """Measure reads of the same blocks in order and shuffled, each time after dropping them from the page cache."""
    samples = list(range(0, path.stat().st_size - BLOCK, BLOCK))
    some = random.Random(3).sample(samples, len(samples))  # noqa: S311 - chance that repeats
    orders = {"inOrder": samples, "shuffled": some}
    found: dict[str, list[float]] = {name: [] for name in orders}
    with path.open("rb", buffering=0) as file:
        for _ in range(rounds):
            for name, order in orders.items():
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                found[name].append(timed(partial(_read, file.fileno(), order)))
    return {
        "blocks": len(samples),
        "blockBytes": BLOCK,
        "seconds": {name: rounded(seconds) for name, seconds in found.items()},
    }


def _read(file: int, samples: Sequence[int]) -> None:
    for sample in samples:
        os.pread(file, BLOCK, sample)


def zero_copy(path: Path, rounds: int) -> dict[str, Any]:
    """Measure the sender's processor time, with ``sendfile`` and with reads into memory and sends."""
    seconds = {name: rounded([_sent(path, name) for _ in range(rounds)]) for name in ("sendfile", "readAndSend")}
    return {"bytes": path.stat().st_size, "processorSeconds": seconds}


def _sent(path: Path, way: str) -> float:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = multiprocessing.Process(target=_drain, args=(server.getsockname(),))
        with child_processes.isolated_interpreters():
            reader.start()
        connection, _ = server.accept()
        with connection, path.open("rb", buffering=0) as file:
            start = time.process_time()
            if way == "sendfile":
                connection.sendfile(file)
            else:
                while piece := file.read(MIB):
                    connection.sendall(piece)
            took = time.process_time() - start
        reader.join()
    return took


def _drain(address: tuple[str, int]) -> None:
    room = bytearray(MIB)
    with socket.create_connection(address) as connection:
        while connection.recv_into(room):
            pass


def scale(directory: Path, log: bytes, rounds: int) -> list[dict[str, Any]]:
    """Measure the processor time to open a partition of many segments, and to find an offset in it."""
    first = next(iter(walk(log)))
    batch = log[: first.end]
    count = first.header.last_offset + 1
    rows = []
    for segment_count in COUNTS:
        partition = directory / f"wide{segment_count}-0"
        partition.mkdir()
        for number in range(segment_count):
            base = number * count
            (partition / f"{base:020}.log").write_bytes(base.to_bytes(8, "big") + batch[8:])
        with open_partition(partition) as opened:
            assert next(iter(opened.records(from_offset=count))).offset == count
        rows.append({"segments": segment_count, **_opened(partition, count, segment_count, rounds)})
    return rows


def _opened(partition: Path, count: int, segment_count: int, rounds: int) -> dict[str, dict[str, float]]:
    def find() -> None:
        with open_partition(partition) as opened:
            next(iter(opened.records(from_offset=count * (segment_count // 2))))

    def list_names() -> None:
        sorted(partition.iterdir())

    return {
        "openAndFindSeconds": rounded([timed(find, time.process_time) for _ in range(rounds)]),
        "listSeconds": rounded([timed(list_names, time.process_time) for _ in range(rounds)]),
    }


def measured(size: int, rounds: int) -> dict[str, Any]:
    """Return all figures.

    Args:
        size: bytes of the logs.
        rounds: number of rounds, of which the median counts.
    """
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        directory, log = Path(name), log_bytes(size)
        path = directory / "small-batches.log"
        path.write_bytes(log)
        os.sync()
        return {
            "segments": segments(directory, size, rounds),
            "index": index(directory, log),
            "sequential": sequential(path, rounds),
            "zeroCopy": zero_copy(path, rounds),
            "scale": scale(directory, log, rounds),
        }


def main() -> int:
    """Measure, and write the report or print it."""
    parser = argparse.ArgumentParser(description="measure what the page on the design claims")
    parser.add_argument("--report", type=Path, help="where to write; default: print")
    parser.add_argument("--mib", type=int, default=64, help="size of the logs")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    conditions = run_conditions(f"python -m tools.docs.why_figures --mib {options.mib} --rounds {options.rounds}")
    found = {"rounds": options.rounds, **measured(options.mib * MIB, options.rounds)}
    written = write_report(options.report, conditions, found)
    if options.report is None:
        print(written, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
