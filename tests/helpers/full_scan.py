"""A log read from end to end by a few lines of `struct`, or told by Kafka's own classes: what lookups are held against.

Nothing here uses the package. The walk looks at sizes and offsets only; records come from the expected lines.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SIZES = struct.Struct(">qi4xb")
LAST_OFFSET_DELTA = struct.Struct(">23xi")


@dataclass
class Batch:
    position: int
    size: int
    base_offset: int
    last_offset: int
    is_control: bool = False
    producer_id: int = -1
    """-1 also where the producer is not transactional."""
    marker: str | None = None
    records: list[tuple[int, int]] = field(default_factory=list)
    """Offset and timestamp of each."""


@dataclass
class Segment:
    base_offset: int
    batches: list[Batch]

    def positions_of(self, offsets: Iterable[int]) -> dict[int, int | None]:
        """Return where a scan for each of these ascending offsets ends: at the first batch not ending below it."""
        found, rest = {}, iter(self.batches)
        batch = next(rest, None)
        for offset in offsets:
            while batch is not None and batch.last_offset < offset:
                batch = next(rest, None)
            found[offset] = None if batch is None else batch.position
        return found


@dataclass
class Log:
    """All that lookups can ask for, found by looking at everything."""

    segments: list[Segment]
    log_start_offset: int

    @property
    def batches(self) -> list[Batch]:
        return [batch for segment in self.segments for batch in segment.batches]

    @property
    def records(self) -> Iterator[tuple[int, int]]:
        """Offset and timestamp of each visible record, control records included."""
        for batch in self.batches:
            yield from ((offset, time) for offset, time in batch.records if offset >= self.log_start_offset)

    @property
    def log_end_offset(self) -> int:
        last = self.segments[-1]
        return max([last.base_offset, self.log_start_offset, *(batch.last_offset + 1 for batch in last.batches)])

    def first_not_older(self, timestamps: Iterable[int]) -> dict[int, tuple[int, int] | None]:
        """For each of these ascending timestamps, timestamp and offset of the first record that is not older."""
        found, rest = {}, self.records
        record = next(rest, None)
        for timestamp in timestamps:
            while record is not None and record[1] < timestamp:
                record = next(rest, None)
            found[timestamp] = None if record is None else (record[1], record[0])
        return found

    def first_of_largest(self) -> tuple[int, int] | None:
        ranked = [(time, -offset) for offset, time in self.records if time != -1]
        return (max(ranked)[0], -max(ranked)[1]) if ranked else None

    def first_batches(self, offsets: Iterable[int]) -> dict[int, Batch | None]:
        """For each of these ascending offsets, the first batch that does not end below it."""
        found, rest = {}, iter(self.batches)
        batch = next(rest, None)
        for offset in offsets:
            while batch is not None and batch.last_offset < offset:
                batch = next(rest, None)
            found[offset] = batch
        return found

    def delivered(self, start: int) -> list[int]:
        """Offsets of the data records from an offset on."""
        return [
            offset for batch in self.batches if not batch.is_control for offset, _ in batch.records if offset >= start
        ]

    def fates(self) -> tuple[set[tuple[int, int]], int]:
        """Return producer and first offset of each batch that was aborted, and the last stable offset."""
        aborted, undecided = set(), {}
        for batch in self.batches:
            if batch.producer_id >= 0 and not batch.is_control:
                undecided.setdefault(batch.producer_id, []).append(batch.base_offset)
            elif batch.marker in {"ABORT", "COMMIT"}:
                closed = undecided.pop(batch.producer_id, [])
                aborted |= {(batch.producer_id, base) for base in closed} if batch.marker == "ABORT" else set()
        stable = min((offsets[0] for offsets in undecided.values()), default=self.log_end_offset)
        return aborted, max(stable, self.log_start_offset)

    def committed(self, start: int) -> list[int]:
        aborted, stable = self.fates()
        return [
            offset
            for batch in self.batches
            if not batch.is_control and (batch.producer_id, batch.base_offset) not in aborted
            for offset, _ in batch.records
            if start <= offset < stable
        ]

    def offsets(self) -> range:
        """Every offset from below the start to past the end."""
        return range(max(self.segments[0].base_offset - 2, 0), self.log_end_offset + 3)

    def timestamps(self) -> list[int]:
        times = {time for _, time in self.records if time >= 0} | {0}
        return sorted({near for time in times for near in (time - 1, time, time + 1) if near >= 0})


def sampled(values: Iterable[int], count: int, seed: str) -> list[int]:
    """All of the values where they are few, else a few of them: always the same for a seed, and both ends."""
    values = list(values)
    if len(values) <= count:
        return values
    few = min(count, 120)
    return sorted({*random.Random(seed).sample(values, few), *values[:4], *values[-4:]})  # noqa: S311


def walked(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Position, size and last offset of each entry."""
    position = 0
    while position + 17 < len(data):
        offset, size, magic = SIZES.unpack_from(data, position)
        if size < 14 or position + 12 + size > len(data):
            return
        delta = LAST_OFFSET_DELTA.unpack_from(data, position)[0] if magic == 2 else 0
        yield position, 12 + size, offset + delta
        position += 12 + size


def expected_logs(lines: list[dict[str, Any]], checkpoint: int = 0) -> dict[str, Log]:
    """Return what Kafka's classes read, by partition directory, without files that are renamed for removal."""
    logs: dict[str, dict[str, Segment]] = {}
    for line in lines:
        directory, _, name = line["file"].rpartition("/")
        if not name.endswith(".log") or line["type"] not in {"file", "batch", "record"}:
            continue
        segments = logs.setdefault(directory, {})
        segment = segments.setdefault(name, Segment(int(name.partition(".")[0]), []))
        if line["type"] == "batch":
            segment.batches.append(batch_of(line))
        elif line["type"] == "record":
            segment.batches[-1].records.append((line["offset"], line["timestamp"]))
            segment.batches[-1].marker = line.get("control")
    return {
        directory: Log(ordered := [files[name] for name in sorted(files)], max(checkpoint, ordered[0].base_offset))
        for directory, files in logs.items()
    }


def batch_of(line: dict[str, Any]) -> Batch:
    return Batch(
        line["position"],
        line["sizeInBytes"],
        line["baseOffset"],
        line["lastOffset"],
        line["isControl"],
        line["producerId"] if line["isTransactional"] else -1,
    )


def agrees_with_bytes(log: Log, directory: Path) -> bool:
    """Tell whether the entries of the expected lines are where sizes alone lead."""
    return all(
        [(batch.position, batch.size, batch.last_offset) for batch in segment.batches]
        == list(walked((directory / f"{segment.base_offset:020}.log").read_bytes()))
        for segment in log.segments
    )
