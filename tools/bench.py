"""``make bench``: how quick the reference reader is, by format, on the bundled directories.

The reference is written to be read. These figures say what to expect of it on this machine, and nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import demo_data

from seglog_format import walk
from seglog_format.codec.decode import decode_frame
from seglog_format.errors import Location

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(slots=True)
class Figures:
    """What was decoded, and how long it took."""

    size: int = 0
    records: int = 0
    seconds: float = 0.0

    def row(self) -> str:
        """Megabytes and records a second."""
        return f"{self.size / 1e6 / self.seconds:11.1f} {self.records / self.seconds:12,.0f}"


def measure(logs: list[bytes], seconds: float) -> dict[tuple[int, str], Figures]:
    """Decode every entry again and again, with its checksum, until the time is up."""
    figures: defaultdict[tuple[int, str], Figures] = defaultdict(Figures)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for log in logs:
            for frame in walk(memoryview(log)):
                started = time.perf_counter()
                batch = decode_frame(frame, at=Location())
                entry = figures[frame.header.magic, CODECS[frame.header.codec_id]]
                entry.seconds += time.perf_counter() - started
                entry.size += frame.header.size_in_bytes
                entry.records += len(batch.records)
    return figures


def main() -> None:
    """Print one line for each format and codec."""
    parser = argparse.ArgumentParser(description="how quick the reference reader is")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to measure")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as name:
        target = demo_data.unpack(Path(name) / "demo")
        logs = [path.read_bytes() for path in sorted(target.glob("kafka-*/*/*.log"))]
    print(f"{len(logs)} logs, {sum(map(len, logs)) / 1e6:.1f} MB, written by brokers; checksums verified\n")
    print("magic codec  MB/s of log    records/s")
    for (magic, codec), entry in sorted(measure(logs, seconds).items()):
        print(f"{magic:5} {codec:6}{entry.row()}")
    print("\nThis is the reference reader, which is written to be read.")


if __name__ == "__main__":
    main()
