"""Checks of chapters 20 and 51 about leader epochs: in the log, and in the checkpoint beside it."""

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

    from seglog_format.small_model import EpochStart

EPOCH_POSITION: Final = 12
"""Of the field in a batch."""


class EpochRun(NamedTuple):
    """Batches of one leader epoch that follow each other.

    Attributes:
        epoch: of all of them, 0 or more.
        first_offset: of the first.
        last_offset: of the last.
        at: where the first stands.
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
    """Leader epochs as a checkpoint has them, and as the log has them from the log start offset on."""

    path: str
    entries: Sequence[EpochStart]
    runs: Sequence[EpochRun]


@checks("SEG-LOG-012")
def epochs_do_not_go_back(log: EpochsOfLog) -> Iterator[Problem]:
    """Batches without an epoch, which compaction makes of old messages, do not count."""
    for before, run in pairwise(log.runs):
        if run.epoch < before.epoch:
            place = run.at.at("partition_leader_epoch", EPOCH_POSITION, 4)
            yield Problem(place, f"{before.epoch} or more, as before it", run.epoch)


@checks("SEG-CKP-015")
def checkpoint_knows_epochs(subject: EpochsAndCheckpoint) -> Iterator[Problem]:
    """From its first entry on: what stands before it is not known any more."""
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
    """What is to be said about leader epochs across the segments of a partition.

    Args:
        epochs: of each segment.
        checkpoint: of the partition, if it has one.
        log_start_offset: what ends below it is not looked at.
    """
    filled = [runs for runs in epochs if runs]
    for before, after in pairwise(filled):
        yield from findings_of(EpochsOfLog((before[-1], after[0])))
    if checkpoint is None:
        return
    try:
        entries = decode_leader_epoch_checkpoint(read_whole(checkpoint), Location(str(checkpoint))).entries
    except SeglogError:
        return  # which `text_file_findings` reports
    if all(
        after.epoch > before.epoch and after.start_offset > before.start_offset for before, after in pairwise(entries)
    ):
        runs = [run for runs in filled for run in runs if run.last_offset >= log_start_offset]
        yield from findings_of(EpochsAndCheckpoint(str(checkpoint), entries, runs))


def _increase(entries: Sequence[EpochStart]) -> bool:
    """Whether a checkpoint can be looked anything up in; SEG-CKP-007 reports others."""
    pairs = pairwise(entries)
    return all(after.epoch > before.epoch and after.start_offset > before.start_offset for before, after in pairs)
