"""Fast parsers for checkpoints as brokers write them; callers parse any other content with the declared schema.

They load nothing, since every list of a log directory reads checkpoints.
"""

from __future__ import annotations

import re
from typing import Final

LINE: Final = re.compile(rb"([a-zA-Z0-9._-]+) (0|[1-9][0-9]{0,8}) (0|[1-9][0-9]{0,17})\n")
CHECKPOINT: Final = re.compile(rb"0\n(0|[1-9][0-9]{0,8})\n((?:%b)*)" % LINE.pattern)
"""Version, count and lines, with so few digits that no number overflows."""

EPOCH_LINE: Final = re.compile(rb"(0|[1-9][0-9]{0,8}) (0|[1-9][0-9]{0,17})\n")
EPOCHS: Final = re.compile(rb"0\n(0|[1-9][0-9]{0,8})\n((?:%b)*)" % EPOCH_LINE.pattern)
"""Version, count and lines of a leader epoch checkpoint."""


def simple_offsets(data: bytes) -> dict[tuple[str, int], int] | None:
    """Parse offsets by topic and partition, where the last line counts; return None for any unusual content.

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


def simple_epochs(data: bytes) -> list[tuple[int, int]] | None:
    """Parse leader epochs and their first offsets; return None for any unusual content.

    Args:
        data: the whole file.
    """
    found = EPOCHS.fullmatch(data)
    if found is None:
        return None
    lines = EPOCH_LINE.findall(found[2])
    return [(int(epoch), int(start)) for epoch, start in lines] if len(lines) == int(found[1]) else None
