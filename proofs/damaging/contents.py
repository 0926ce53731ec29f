"""What records hold, whatever their offsets are; and what a directory still delivers."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from seglog_format import SeglogError, open_partition

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format import Record

Content: TypeAlias = tuple[int | None, bytes | None, bytes | None]


def contents_of(records: Iterable[Record]) -> Counter[Content]:
    """How often each timestamp, key and value comes."""
    return Counter((record.timestamp_ms, record.key, record.value) for record in records)


def delivered(partition: Path) -> Counter[Content]:
    """What can be read of a partition directory; an error ends it, and says so aloud."""
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
