"""Which leader wrote what: the leader epochs of a log (chapter 51)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.small_model import EpochStart

if TYPE_CHECKING:
    from collections.abc import Iterable


class LeaderEpochs:
    """The first offset of each leader epoch, in order; both numbers strictly increase (SEG-CKP-007)."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self._entries = list(entries)

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """Epochs and first offsets."""
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Say that an epoch has begun at an offset or before; whatever contradicts that is forgotten (SEG-APP-016).

        Returns:
            Whether anything changed.
        """
        latest = self._entries[-1] if self._entries else None
        if epoch < 0 or (latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset):
            return False
        kept = (entry for entry in self._entries if entry.epoch < epoch and entry.start_offset < start_offset)
        self._entries = [*kept, EpochStart(epoch, start_offset)]
        return True

    def clear(self) -> bool:
        """Forget all, as messages of magic 0 or 1 make a log do; whether anything changed."""
        changed = bool(self._entries)
        self._entries = []
        return changed

    def truncate_to(self, offset: int) -> bool:
        """Forget epochs that begin at an offset or above; whether anything changed."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        changed = len(kept) < len(self._entries)
        self._entries = kept
        return changed

    def start_at(self, offset: int) -> bool:
        """Let the log begin at an offset: of the epochs before, the last one begins there; whether anything changed."""
        before = [entry for entry in self._entries if entry.start_offset <= offset]
        if not before or before == [EpochStart(before[-1].epoch, offset)]:
            return False
        self._entries = [EpochStart(before[-1].epoch, offset), *self._entries[len(before) :]]
        return True
