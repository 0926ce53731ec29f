"""The offset index and the time index of a log, built entry by entry (chapters 40, 41 and 71)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seglog_algorithms.entries import MOST_AHEAD, NO_TIMESTAMP, up_to_damage
from seglog_algorithms.records import first_offset
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.time_index import TimeIndexEntry

if TYPE_CHECKING:
    from seglog_algorithms.index_settings import Settings
    from seglog_algorithms.records import Decompress


@dataclass(frozen=True, slots=True)
class Indexes:
    """Bytes of an offset index and a time index."""

    offset: bytes
    time: bytes


@dataclass(slots=True)
class IndexBuilder:
    """Adds index entries unit by unit.

    Attributes:
        interval: `index.interval.bytes`.
        since: bytes since the last indexed unit began, or since the start of the segment.
        largest: largest timestamp so far, with its offset.
        offsets: offset and position of each entry of the offset index.
        times: timestamp and offset of each entry of the time index.
    """

    interval: int
    since: int = 0
    largest: tuple[int, int] = (NO_TIMESTAMP, 0)
    offsets: list[tuple[int, int]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_due(self) -> bool:
        """Whether index entries are due at the start of the next unit (SEG-ROL-010)."""
        return self.since > self.interval

    def add(self, offset: int, position: int, size: int, largest: tuple[int, int]) -> None:
        """Add a unit."""
        if largest[0] > self.largest[0]:  # of several, the earliest
            self.largest = largest
        if self.is_due:
            self.add_point(offset, position)
            self.since = 0
        self.since += size

    def add_point(self, offset: int, position: int) -> None:
        """Add the entries that are due."""
        self.offsets.append((offset, position))
        self.add_time()  # SEG-APP-015

    def add_time(self) -> None:
        """Add the largest timestamp to the time index if it is larger than the last one there (SEG-TIX-002)."""
        if self.largest[0] > (self.times[-1][0] if self.times else NO_TIMESTAMP):
            self.times.append(self.largest)

    def built(self, base: int) -> Indexes:
        """Return the bytes."""
        return Indexes(
            b"".join(OffsetIndexEntry.build({"relative_offset": o - base, "position": p}) for o, p in self.offsets),
            b"".join(TimeIndexEntry.build({"timestamp_ms": t, "relative_offset": o - base}) for t, o in self.times),
        )


def indexes_of(log: bytes, base: int, settings: Settings, decompress: Decompress) -> Indexes:
    """Return the indexes of a log (SEG-RCV-025); an offset that does not fit ends them (SEG-LOG-009)."""
    builder = IndexBuilder(settings.index_interval_bytes)
    for entry in up_to_damage(log):
        named = first_offset(entry, decompress) if settings.stores_first_offset else entry.last_offset  # SEG-ROL-011
        if not (0 <= entry.last_offset - base <= MOST_AHEAD and named >= base):
            break
        builder.add(named, entry.position, len(entry.data), (entry.max_timestamp_ms, entry.last_offset))
    builder.add_time()  # SEG-TIX-006
    return builder.built(base)
