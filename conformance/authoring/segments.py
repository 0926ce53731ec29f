"""Segments of a log, and their indexes by the sparse rule."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from authoring.batches import Batch, Rec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from authoring.casefile import Unit

INTERVAL: Final = 4096
"""The setting that brokers have."""


def name_of(base: int, kind: str = ".log") -> str:
    """Return the name of a segment file."""
    return f"{base:020}{kind}"


def bytes_of(units: Iterable[Unit | bytes]) -> bytes:
    """Entries one behind the other."""
    return b"".join(unit if isinstance(unit, bytes) else unit.encoded() for unit in units)


def last_offset(unit: Unit) -> int:
    """Return the last offset of an entry."""
    return unit.next_offset - 1


def largest_timestamp(unit: Unit) -> int:
    """Return the largest timestamp of an entry, as its header says."""
    return int(unit.answer(0)["maxTimestamp"])


def offset_index(units: Sequence[Unit], interval: int, base: int = 0) -> bytes:
    """Return the offset index of a segment whose entries are each a unit of the sparse rule."""
    rows, since, position = b"", 0, 0
    for unit in units:
        if since > interval:
            rows += struct.pack(">ii", last_offset(unit) - base, position)
            since = 0
        size = len(unit.encoded())
        since, position = since + size, position + size
    return rows


def time_index(units: Sequence[Unit], interval: int, base: int = 0) -> bytes:
    """Return the time index of the same segment, once it is closed."""
    rows, since, written = b"", 0, -1
    newest = (-1, base)
    for unit in units:
        if largest_timestamp(unit) > newest[0]:
            newest = (largest_timestamp(unit), last_offset(unit))
        if since > interval:
            since = 0
            if newest[0] > written:
                rows, written = rows + time_entry(*newest, base), newest[0]
        since += len(unit.encoded())
    return rows + (time_entry(*newest, base) if newest[0] > written else b"")


def time_entry(timestamp: int, offset: int, base: int = 0) -> bytes:
    """Return a row of a time index."""
    return struct.pack(">qi", timestamp, offset - base)


def aborted(producer_id: int, first: int, last: int, stable: int) -> bytes:
    """Return a row of a transaction index."""
    return struct.pack(">hqqqq", 0, producer_id, first, last, stable)


def row(count: int, size: int = 3, *, base: int = 0, start: int = 1000, step: int = 10) -> list[Batch]:
    """Batches of some records each, one behind the other."""
    recs = tuple(Rec(key=b"k%d" % at, value=b"value", time=at) for at in range(size))
    return [Batch(base=base + at * size, recs=recs, base_timestamp=start + at * step) for at in range(count)]


ROW: Final = row(5)
SIZE: Final = len(ROW[0].encoded())
"""Five batches of one size, for most of the cases."""
