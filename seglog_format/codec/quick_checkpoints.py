"""Offset checkpoints as brokers write them, read without the declared schema; whatever is otherwise is left to it."""

from __future__ import annotations

import re
from typing import Final

LINE: Final = re.compile(rb"([a-zA-Z0-9._-]+) (0|[1-9][0-9]{0,8}) (0|[1-9][0-9]{0,17})\n")
CHECKPOINT: Final = re.compile(rb"0\n(0|[1-9][0-9]{0,8})\n((?:%b)*)" % LINE.pattern)
"""Version, count and lines; numbers are those that cannot be too large."""


def quick_offsets(data: bytes) -> dict[tuple[str, int], int] | None:
    """Offsets by topic and partition, of which the last line counts; None where anything is irregular.

    Args:
        data: the whole file.
    """
    found = CHECKPOINT.fullmatch(data)
    if found is None:
        return None
    lines = LINE.findall(found[2])
    if len(lines) != int(found[1]):
        return None
    return {(topic.decode("ascii"), int(partition)): int(offset) for topic, partition, offset in lines}
