"""Contents of records without their offsets, and the records that a directory still delivers."""

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
        offset: its offset.
        content: timestamp, key and value.
    """

    offset: int
    content: Content


def held_in(records: Iterable[Record]) -> list[Held]:
    """Return the records of a log."""
    return [Held(record.offset, (record.timestamp_ms, record.key, record.value)) for record in records]


def missing(held: list[Held], partition: Path, kept: Counter[Content]) -> int:
    """Return the number of records that should be delivered and are not.

    Retention removes the first segments, and leaves no other trace. So records before the first remaining log are not
    counted as missing, unless an index of theirs remains; nor are those of a directory that brokers delete.
    """
    if partition.name.endswith("-delete"):
        return 0
    try:
        names = [path.name for path in partition.glob("*.*")]
    except PermissionError:  # no permission for the log directory: all records are missing
        names = []
    bases = {name: int(name[:20]) for name in names if NUMBERED.fullmatch(name)}
    first = min((base for name, base in bases.items() if name.endswith(".log")), default=0)
    if any(base < first for name, base in bases.items() if not name.endswith(".snapshot")):
        first = 0
    return (Counter(each.content for each in held if each.offset >= first) - kept).total()


def current_path(partition: Path) -> Path:
    """Return a partition directory, or the directory with a broker's suffix to which it was renamed."""
    try:
        if partition.exists():
            return partition
    except PermissionError:  # no permission for the log directory
        return partition
    renamed = sorted(path for path in partition.parent.glob(f"{partition.name}.*-*") if path.is_dir())
    return renamed[0] if renamed else partition


def delivered(partition: Path) -> Counter[Content]:
    """Return the records that can be read of a partition directory, up to an error, which readers report."""
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
