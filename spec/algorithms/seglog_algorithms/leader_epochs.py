"""Checkpoints: their text, and the leader epochs of a log (chapter 51)."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_algorithms.damage import Damage
from seglog_algorithms.records import parsed
from seglog_format.schema.checkpoints import CheckpointVersion, LeaderEpochCheckpoint, OffsetCheckpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Epochs: TypeAlias = "list[tuple[int, int]]"
"""Each leader epoch with the offset at which it begins; both numbers increase (SEG-CKP-007)."""

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"


def assigned(epochs: Epochs, epoch: int, start_offset: int) -> Epochs:
    """Return the epochs after a batch with an epoch at an offset (SEG-APP-016)."""
    if epoch < 0 or (epochs and epochs[-1][0] == epoch and epochs[-1][1] <= start_offset):
        return epochs
    kept = [each for each in epochs if each[0] < epoch and each[1] < start_offset]
    return [*kept, (epoch, start_offset)]


def with_newer(epochs: Epochs, found: Epochs) -> Epochs:
    """Return the epochs with those of a log, each if it is above all before it (SEG-RCV-036)."""
    for epoch, start in found:
        if epoch > max((each for each, _ in epochs), default=-1):
            epochs = assigned(epochs, epoch, start)
    return epochs


def truncated_from_end(epochs: Epochs, offset: int) -> Epochs:
    """Return the epochs that begin below an offset (SEG-RCV-028, SEG-TRN-007)."""
    return [each for each in epochs if each[1] < offset]


def truncated_from_start(epochs: Epochs, offset: int) -> Epochs:
    """Return the epochs of a log that starts at an offset: those up to it, if any, become one (SEG-RCV-037)."""
    before = [each for each in epochs if each[1] <= offset]
    return [(before[-1][0], offset), *epochs[len(before) :]] if before else epochs


def within(epochs: Epochs, start: int, end: int) -> Epochs:
    """Return the epochs of a log from its start to its end offset."""
    return truncated_from_start(truncated_from_end(epochs, end), start)


def change_epochs(files: dict[str, bytes], change: Callable[[Epochs], Epochs]) -> None:
    """Change the leader epochs of a partition; a file that cannot be read stays unchanged (SEG-RCV-028)."""
    with suppress(Damage):
        known = read_epochs(files.get(LEADER_EPOCHS, b""))
        if (epochs := change(known)) != known:
            files[LEADER_EPOCHS] = checkpoint(epochs)


def read_epochs(data: bytes) -> Epochs:
    """Return the entries of a leader epoch checkpoint."""
    return [(entry.epoch, entry.start_offset) for entry in _entries(LeaderEpochCheckpoint, data)]


def read_offsets(data: bytes) -> list[tuple[str, int, int]]:
    """Return topic, partition and offset of the entries of an offset checkpoint."""
    return [(entry.topic, entry.partition, entry.offset) for entry in _entries(OffsetCheckpoint, data)]


def _entries(declaration: Any, data: bytes) -> Sequence[Any]:  # noqa: ANN401 - construct is untyped
    version = parsed(CheckpointVersion, io.BytesIO(data), -1).version  # SEG-CKP-005
    if version != 0:
        raise Damage("SEG-CKP-001", text=f"version {version}")
    found = parsed(declaration, io.BytesIO(data), -1)  # SEG-CKP-003, SEG-CKP-004, SEG-CKP-006
    if len(found.entries) != found.entry_count:  # SEG-CKP-002
        raise Damage("SEG-CKP-002", text=f"count {found.entry_count}")
    return list(found.entries)


def with_offset(checkpoint_data: bytes, partition: tuple[str, int], offset: int) -> bytes:
    """Return an offset checkpoint with the offset of one partition (SEG-CKP-008)."""
    others = [entry for entry in read_offsets(checkpoint_data) if entry[:2] != partition]
    return checkpoint(sorted([*others, (*partition, offset)]))


def checkpoint(entries: Iterable[tuple[object, ...]]) -> bytes:
    """Return the text of a checkpoint file: version, count, and a line for each entry (SEG-CKP-001, SEG-CKP-002)."""
    lines = [" ".join(map(str, entry)) for entry in entries]
    return "".join(f"{line}\n" for line in ["0", str(len(lines)), *lines]).encode()  # SEG-CKP-013
