"""Checks of chapters 20 and 51 about leader epochs in the log, and in the checkpoint beside it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.errors import Location, SeglogError
from seglog_format.storage.file_bytes import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seglog_format.record_model import EpochStart

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
