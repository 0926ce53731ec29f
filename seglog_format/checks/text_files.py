"""Verification of checkpoints and other text files, and of leader epochs, which log and checkpoint both know.

The decoders of chapters 11 and 51 report syntax errors.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.checkpoints import (
    decode_clean_shutdown,
    decode_leader_epoch_checkpoint,
    decode_meta_properties,
    decode_offset_checkpoint,
    decode_partition_metadata,
    decode_quorum_state,
)
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.model import CheckpointedOffset, EpochStart, MissingOffsets
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind, printable
from seglog_format.storage.byte_source import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path


DECODERS: Final[dict[FileKind, Callable[[bytes, Location], Any]]] = {
    **dict.fromkeys(OFFSET_CHECKPOINT_KINDS, decode_offset_checkpoint),
    FileKind.LEADER_EPOCH_CHECKPOINT: decode_leader_epoch_checkpoint,
    FileKind.PARTITION_METADATA: decode_partition_metadata,
    FileKind.META_PROPERTIES: decode_meta_properties,
    FileKind.CLEAN_SHUTDOWN: decode_clean_shutdown,
    FileKind.QUORUM_STATE: decode_quorum_state,
}


def text_file_findings(path: Path, kind: FileKind) -> Iterator[Finding]:
    """Yield all findings about one text file; none for kinds without a grammar."""
    decode = DECODERS.get(kind)
    if decode is None:
        return
    try:
        content = decode(read_whole(path), Location(str(path)))
    except FormatError as error:
        yield Finding.of_error(error)
        return
    if kind in OFFSET_CHECKPOINT_KINDS:
        yield from findings_of(PartitionOffsets(str(path), content.entries))
    elif kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        yield from findings_of(EpochCheckpoint(str(path), content.entries))


def read_partition_offsets(path: Path) -> PartitionOffsets | None:
    """Read an offset checkpoint; return None if it is missing or unreadable (reported by `text_file_findings`)."""
    try:
        return PartitionOffsets(str(path), _entries(read_whole(path)))
    except SeglogError:
        return None


@lru_cache(maxsize=len(OFFSET_CHECKPOINT_KINDS))
def _entries(checkpoint: bytes) -> tuple[CheckpointedOffset, ...]:
    """Return the entries of a checkpoint; who checks each partition of a log directory alone asks for the same ones."""
    return decode_offset_checkpoint(checkpoint).entries


# -- checks of chapter 51: checkpoints that parse, but hold impossible values -----------------------------------------


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


LogEnds: TypeAlias = tuple[int, int]
"""The log end offset, and the greater one whose checkpoints name the loss: others prove less of the same loss."""


@dataclass(frozen=True, slots=True)
class OffsetsAndLogs:
    """An offset checkpoint, and the ends of the partitions in its directory, by topic and partition."""

    checkpoint: PartitionOffsets
    ends: Mapping[tuple[str, int], LogEnds]


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
    counted = {(each.topic, each.partition): number for number, each in enumerate(subject.checkpoint.entries)}
    for index in sorted(counted.values()):  # of several lines of a partition, the last counts
        entry = subject.checkpoint.entries[index]
        end, proved = subject.ends.get((entry.topic, entry.partition), (None, 0))
        if end is not None and entry.offset > end:
            missing = MissingOffsets(end, proved) if entry.offset == proved else None
            expected = f"at most {end}, the log end offset of {printable(entry.topic)}-{entry.partition}"
            yield Problem(subject.checkpoint.at(index), expected, entry.offset, missing)


# -- checks of chapters 20 and 51 about leader epochs in the log, and in the checkpoint beside it ---------------------


EPOCH_POSITION: Final = 12
"""Byte position of the leader epoch in a batch."""


class EpochRun(NamedTuple):
    """Consecutive batches of one leader epoch.

    Attributes:
        epoch: the epoch of all of them, 0 or more.
        first_offset: of the first batch.
        last_offset: of the last batch.
        at: location of the first batch.
    """

    epoch: int
    first_offset: int
    last_offset: int
    at: Location


@dataclass(frozen=True, slots=True)
class EpochsOfLog:
    """The leader epochs of a log, in file order."""

    runs: Sequence[EpochRun]


@dataclass(frozen=True, slots=True)
class EpochsAndCheckpoint:
    """The leader epochs in a checkpoint, and those in the log from the log start offset on."""

    path: str
    entries: Sequence[EpochStart]
    runs: Sequence[EpochRun]


@checks("SEG-LOG-012")
def epochs_do_not_go_back(log: EpochsOfLog) -> Iterator[Problem]:
    """Report an epoch below an earlier one; converted old messages, which have no epoch, are ignored."""
    for before, run in pairwise(log.runs):
        if run.epoch < before.epoch:
            location = run.at.at("partition_leader_epoch", EPOCH_POSITION, 4)
            yield Problem(location, f"{before.epoch} or more, as before it", run.epoch)


@checks("SEG-CKP-015")
def checkpoint_knows_epochs(subject: EpochsAndCheckpoint) -> Iterator[Problem]:
    """Report an epoch that the checkpoint lacks, from its first entry on."""
    for run in subject.runs:
        started = [entry for entry in subject.entries if entry.start_offset <= run.last_offset]
        if started and started[-1].epoch != run.epoch:
            expected = f"epoch {run.epoch} at offset {run.last_offset}, as in the log"
            yield Problem(Location(subject.path, field="entries"), expected, f"epoch {started[-1].epoch}")
            return
        if len(started) > 1 and started[-1].start_offset > max(run.first_offset, subject.entries[0].start_offset):
            expected = f"epoch {run.epoch} to start at or below {run.first_offset}, as in the log"
            yield Problem(Location(subject.path, field="entries"), expected, started[-1].start_offset)
            return


def epoch_findings(
    epochs: Sequence[Sequence[EpochRun]], checkpoint: Path | None, log_start_offset: int
) -> Iterator[Finding]:
    """Yield findings about leader epochs across the segments of a partition.

    Args:
        epochs: of each segment.
        checkpoint: of the partition, if it has one.
        log_start_offset: runs that end below it are ignored.
    """
    filled = [runs for runs in epochs if runs]
    for before, after in pairwise(filled):
        yield from findings_of(EpochsOfLog((before[-1], after[0])))
    if checkpoint is None:
        return
    try:
        entries = decode_leader_epoch_checkpoint(read_whole(checkpoint), Location(str(checkpoint))).entries
    except SeglogError:
        return  # `text_file_findings` reports this
    if _increase(entries):
        runs = [run for runs in filled for run in runs if run.last_offset >= log_start_offset]
        yield from findings_of(EpochsAndCheckpoint(str(checkpoint), entries, runs))


def _increase(entries: Sequence[EpochStart]) -> bool:
    """Return whether the entries of a checkpoint are in order; a check of SEG-CKP-007 reports those that are not."""
    pairs = pairwise(entries)
    return all(after.epoch > before.epoch and after.start_offset > before.start_offset for before, after in pairs)
