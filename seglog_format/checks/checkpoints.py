"""Checks of chapter 51: checkpoints that parse, but hold impossible values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.errors import Location
from seglog_format.model import MissingOffsets
from seglog_format.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.record_model import CheckpointedOffset, EpochStart


@dataclass(frozen=True, slots=True)
class EpochCheckpoint:
    """A leader epoch checkpoint."""

    path: str
    entries: Sequence[EpochStart]

    def at(self, index: int, field: str) -> Location:
        """Return the location of a field of an entry."""
        return Location(self.path, field=f"entries[{index}].{field}")


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """An offset checkpoint."""

    path: str
    entries: Sequence[CheckpointedOffset]

    def at(self, index: int) -> Location:
        """Return the location of an entry."""
        return Location(self.path, field=f"entries[{index}]")


@dataclass(frozen=True, slots=True)
class OffsetsAndLogs:
    """An offset checkpoint, and the log end offsets of the partitions in its directory, by topic and partition."""

    checkpoint: PartitionOffsets
    log_end_offsets: Mapping[tuple[str, int], int]


@checks("SEG-CKP-007")
def epochs_increase(checkpoint: EpochCheckpoint) -> Iterator[Problem]:
    """Report epochs or start offsets that do not increase."""
    for index, entry in enumerate(checkpoint.entries):
        if entry.epoch < 0 or entry.start_offset < 0:
            yield Problem(checkpoint.at(index, "epoch"), "an epoch and offset of 0 or more", tuple(entry))
    for index, (before, entry) in enumerate(pairwise(checkpoint.entries), start=1):
        if entry.epoch <= before.epoch:
            yield Problem(checkpoint.at(index, "epoch"), f"more than {before.epoch}", entry.epoch)
        if entry.start_offset <= before.start_offset:
            yield Problem(checkpoint.at(index, "start_offset"), f"more than {before.start_offset}", entry.start_offset)


@checks("SEG-CKP-008")
def one_entry_for_a_partition(checkpoint: PartitionOffsets) -> Iterator[Problem]:
    """Report a second entry for a partition; brokers use the last."""
    seen: Counter[tuple[str, int]] = Counter()
    for index, entry in enumerate(checkpoint.entries):
        partition = entry.topic, entry.partition
        if seen[partition]:
            found = f"another one for {printable(entry.topic)}-{entry.partition}"
            yield Problem(checkpoint.at(index), "one entry for a partition", found)
        if entry.offset < 0:
            yield Problem(checkpoint.at(index), "an offset of 0 or more", entry.offset)
        seen[partition] += 1


@checks("SEG-CKP-012")
def not_above_log_end(subject: OffsetsAndLogs) -> Iterator[Problem]:
    """Report an offset above the log end offset; brokers lower it to the log end offset."""
    for index, entry in enumerate(subject.checkpoint.entries):
        end = subject.log_end_offsets.get((entry.topic, entry.partition))
        if end is not None and entry.offset > end:
            expected = f"at most {end}, the log end offset of {printable(entry.topic)}-{entry.partition}"
            yield Problem(subject.checkpoint.at(index), expected, entry.offset, MissingOffsets(end, entry.offset))
