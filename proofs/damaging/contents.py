"""What records hold, whatever their offsets are; and what a directory still delivers."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format import open_partition
from seglog_format.errors import SeglogError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.types import Record

Content: TypeAlias = tuple[int | None, bytes | None, bytes | None]

NUMBERED: Final = re.compile(r"[0-9]{20}\.[a-z]+")


@dataclass(frozen=True, slots=True)
class Held:
    """A record that was in a log.

    Attributes:
        offset: of it.
        content: timestamp, key and value.
    """

    offset: int
    content: Content


def held_in(records: Iterable[Record]) -> list[Held]:
    """Return the records of a log."""
    return [Held(record.offset, (record.timestamp_ms, record.key, record.value)) for record in records]


def missing(held: list[Held], partition: Path, kept: Counter[Content]) -> int:
    """Return how many records are not delivered any more that should be.

    Retention removes segments from the beginning on, and nothing but their absence tells of it: the records before the
    first log that is left are not missed, unless an index is left that belonged to them.
    """
    try:
        names = [path.name for path in partition.glob("*.*")]
    except PermissionError:  # the log directory may not be entered: all of it is missed
        names = []
    bases = {name: int(name[:20]) for name in names if NUMBERED.fullmatch(name)}
    first = min((base for name, base in bases.items() if name.endswith(".log")), default=0)
    if any(base < first for name, base in bases.items() if not name.endswith(".snapshot")):
        first = 0
    return (Counter(each.content for each in held if each.offset >= first) - kept).total()


def current_path(partition: Path) -> Path:
    """Return a partition directory, or what it was renamed to as brokers rename it, with everything in it."""
    try:
        if partition.exists():
            return partition
    except PermissionError:  # the log directory may not be entered
        return partition
    renamed = sorted(path for path in partition.parent.glob(f"{partition.name}.*-*") if path.is_dir())
    return renamed[0] if renamed else partition


def delivered(partition: Path) -> Counter[Content]:
    """Return what can be read of a partition directory; an error ends it, and says so aloud."""
    partition = current_path(partition)
    found: Counter[Content] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with open_partition(partition) as opened:
                for record in opened.records():
                    found[(record.timestamp_ms, record.key, record.value)] += 1
        except (SeglogError, OSError):
            pass
    return found
