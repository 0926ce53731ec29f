"""The settings by which the indexes of a directory were built, as far as the indexes show them (SEG-RCV-025)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seglog_algorithms.directory import INDEX, LOG, TIME_INDEX, base_offsets, file_name
from seglog_algorithms.entries import up_to_damage
from seglog_algorithms.offset_index import Slots
from seglog_format.schema.offset_index import OffsetIndexEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_algorithms.directory import Directory
    from seglog_algorithms.entries import Entry

DEFAULT_INTERVAL: Final = 4096
_DECIMALS: Final = [digit * 10**exponent for digit in (1, 5, 2, 3, 4, 6, 7, 8, 9) for exponent in range(9)]
ROUND: Final = [DEFAULT_INTERVAL, *(1 << exponent for exponent in range(30, -1, -1)), *_DECIMALS]
"""Usual values of `index.interval.bytes`, the most plausible first."""
NO_LIMIT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Settings:
    """How indexes are built.

    Attributes:
        index_interval_bytes: Kafka's setting.
        stores_first_offset: whether an offset index names the first offset of a unit, as before 2.0 (SEG-ROL-011).
        has_time_index: whether there are time indexes, as since 0.10.1.
    """

    index_interval_bytes: int = DEFAULT_INTERVAL
    stores_first_offset: bool = False
    has_time_index: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one index shows: the intervals that lead to exactly its entries, and the greatest that they allow."""

    allowed: range
    upper: int
    firsts: int
    lasts: int


def inferred(files: Directory, interval: int | None = None) -> Settings:
    """Return the settings that the indexes of a directory show."""
    bases = base_offsets(files)
    found = [one for base in reversed(bases) if (one := _evidence(files, base)) is not None]
    firsts, lasts = sum(one.firsts for one in found), sum(one.lasts for one in found)
    has_time_index = any(file_name(base, TIME_INDEX) in files for base in bases)
    stores_first = firsts > lasts or (not lasts and not has_time_index and _is_early(files, bases))
    return Settings(
        _interval(found) if interval is None else interval, stores_first, has_time_index or not stores_first
    )


def _interval(found: Sequence[Evidence]) -> int:
    """Return the round value that explains most indexes, or else the greatest that the closest entries allow."""
    shown = [one for one in found if one.upper < NO_LIMIT]
    upper = min((one.upper for one in shown), default=NO_LIMIT)
    values = [value for value in ROUND if value <= upper]
    if not shown:
        return DEFAULT_INTERVAL

    def votes(value: int) -> tuple[int, bool, int]:
        return (
            sum(value in one.allowed for one in shown),
            value == DEFAULT_INTERVAL,
            sum(value in one.allowed for one in found),
        )

    best = max(values, key=votes, default=0)
    if best in values and votes(best)[0]:
        return best
    return DEFAULT_INTERVAL if upper >= DEFAULT_INTERVAL else max(values, default=0)


def _evidence(files: Directory, base: int) -> Evidence | None:
    """Return what the offset index of a segment shows; None if there is none, or it is of another log."""
    if file_name(base, INDEX) not in files:
        return None
    log = list(up_to_damage(files[file_name(base, LOG)]))
    index = files[file_name(base, INDEX)]
    slots = Slots(OffsetIndexEntry, index[: len(index.rstrip(b"\0")) + OffsetIndexEntry.sizeof() - 1])
    stored = [each for each in slots if each.position > 0]
    by_position = {entry.position: entry for entry in log}
    end = log[-1].position if log else -1
    indexed = [each for each in stored if each.position <= end]
    if stored and (not indexed or any(each.position not in by_position for each in indexed)):
        return None
    named = [(base + each.relative_offset, by_position[each.position]) for each in indexed]
    upper = min((after - before for before, after in pairwise([0, *(each.position for each in indexed)])), default=None)
    return Evidence(
        _allowed(log, {each.position for each in indexed}),
        NO_LIMIT if upper is None else upper - 1,
        sum(offset < entry.last_offset for offset, entry in named),
        sum(offset > entry.last_offset or entry.least_offset < offset == entry.last_offset for offset, entry in named),
    )


def _allowed(log: Sequence[Entry], indexed: set[int]) -> range:
    """Return the intervals by which an index built entry by entry has entries for exactly these positions."""
    least, most, start = 0, NO_LIMIT, 0
    for entry in log:
        if entry.position in indexed:
            most, start = min(most, entry.position - start - 1), entry.position
        else:
            least = max(least, entry.position - start)
    return range(least, most + 1)


def _is_early(files: Directory, bases: Sequence[int]) -> bool:
    """Return whether there are offset indexes, and the first entry is of magic 0."""
    first = next((entry for base in bases for entry in up_to_damage(files[file_name(base, LOG)])), None)
    return first is not None and first.magic == 0 and any(file_name(base, INDEX) in files for base in bases)
