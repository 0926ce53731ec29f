"""Counts of the entries that the columnar engine leaves to slower code, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum


class FallbackCause(Enum):
    """Cause of a fallback: the first part of an entry that the compiled kernel could not accept."""

    FRAMING = "framing"
    """The size or the magic is impossible, or the entry is cut short."""
    OFFSETS = "offsets"
    """The offsets are not above those of the entry before, or the segment cannot hold them."""
    CHECKSUM = "checksum"
    """The stored and the computed checksum differ."""
    COMPRESSION = "compression"
    """Neither the kernel nor the codec's library decompresses the entry."""
    RECORDS = "records"
    """The kernel does not read the number of records, or a field of a record."""


@dataclass(slots=True)
class ScanStatistics:
    """Counts of the entries that a scan leaves to slower code. `Partition.scan` adds to it while batches are read.

    Attributes:
        fallbacks: entries that the fallback decoder has read or refused, by cause.
        library_decompressed: entries in a container that the kernel does not read: a library decompressed each of them,
            and the kernel read its records.
    """

    fallbacks: Counter[FallbackCause] = field(default_factory=Counter)
    library_decompressed: int = 0

    @property
    def fallback_count(self) -> int:
        """Return the number of entries that the fallback decoder has read or refused."""
        return self.fallbacks.total()

    def add(self, other: ScanStatistics) -> None:
        """Add the counts of another scan, or of a part of this one."""
        self.fallbacks.update(other.fallbacks)
        self.library_decompressed += other.library_decompressed
