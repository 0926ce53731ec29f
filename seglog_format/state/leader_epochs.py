"""The leader epochs of a log, with the offset at which each begins (chapter 51)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError
from seglog_format.model import INT32_MAX, NO_PARTITION_LEADER_EPOCH, RecordBatchHeader
from seglog_format.record_model import EpochStart

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.model import BatchHeader


class LeaderEpochs:
    """The first offset of each leader epoch, in order; both numbers strictly increase (SEG-CKP-007)."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries = list(entries)
        self._is_in_order = all(one.epoch < two.epoch and one[1] < two[1] for one, two in pairwise(self._entries))

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """Epochs and their first offsets."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that an epoch begins at an offset or before, and drop the entries that contradict it (SEG-APP-016).

        Returns:
            Whether any entry changed.
        """
        latest = self._entries[-1] if self._entries else None
        if epoch < 0 or (latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset):
            return False
        is_next = latest is None or (latest.epoch < epoch and latest.start_offset < start_offset)
        if not (is_next and self._is_in_order):
            self._entries = [one for one in self._entries if one.epoch < epoch and one.start_offset < start_offset]
        self._entries.append(EpochStart(epoch, start_offset))
        return True

    def clear(self) -> bool:
        """Drop all epochs, as messages of magic 0 or 1 require (SEG-APP-025); return whether anything changed."""
        changed = bool(self._entries)
        self._entries = []
        return changed

    def truncate_to(self, offset: int) -> bool:
        """Drop epochs that begin at an offset or above; return whether anything changed."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        changed = len(kept) < len(self._entries)
        self._entries = kept
        return changed

    def start_at(self, offset: int) -> bool:
        """Set the log start offset: the last earlier epoch then begins there; return whether anything changed."""
        before = [entry for entry in self._entries if entry.start_offset <= offset]
        if not before or before == [EpochStart(before[-1].epoch, offset)]:
            return False
        self._entries = [EpochStart(before[-1].epoch, offset), *self._entries[len(before) :]]
        return True


class EpochRises:
    """Collects where a higher leader epoch begins in the entries of a log.

    Attributes:
        starts: each epoch that is greater than all before it, with the first offset of its batch.
        has_entries: whether an entry of any magic was added.
    """

    def __init__(self) -> None:
        self.starts: list[EpochStart] = []
        self.has_entries = False

    def add(self, header: BatchHeader) -> None:
        """Add the next entry."""
        self.has_entries = True
        if isinstance(header, RecordBatchHeader):
            epoch = header.partition_leader_epoch
            if epoch > (self.starts[-1].epoch if self.starts else NO_PARTITION_LEADER_EPOCH):
                self.starts.append(EpochStart(epoch, header.base_offset))


def require_newest(leader_epoch: int, newest: int, path: Path) -> None:
    """Refuse a leader epoch for appends that is older than one in the log (SEG-APP-017).

    Raises:
        UsageError: the epoch is older, negative, or does not fit into 32 bits.
    """
    if not max(newest, 0) <= leader_epoch <= INT32_MAX:
        msg = f"{path}: leader epoch {leader_epoch}: the log knows {newest}, and none may be older (SEG-APP-017)"
        raise UsageError(msg)
