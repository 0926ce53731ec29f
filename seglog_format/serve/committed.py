"""The committed offsets of groups in memory, limited in size; the least recently used groups are dropped."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kio.schema.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.serve.limits import Limits

MAX_METADATA_SIZE: Final = 4096
"""Maximum size of the metadata beside a committed offset; the default of brokers."""

OFFSET_SIZE: Final = 300
GROUP_SIZE: Final = 500
"""Memory that an offset or a group takes besides its texts."""

LARGEST_PART: Final = 8
"""The share of the memory for all groups that one group may use."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset with the client's metadata."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""
        return OFFSET_SIZE + len(self.metadata)


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group.

    Attributes:
        used_at: time of the last commit or fetch, in seconds since 1970.
        offsets: by topic and partition.
        size: approximate bytes of memory.
        change: number of changes so far.
    """

    used_at: float
    offsets: dict[tuple[str, int], Committed] = field(default_factory=dict)
    size: int = GROUP_SIZE
    change: int = 0


class CommittedOffsets:
    """Committed offsets by group. Callers hold the coordinator's lock.

    Args:
        limits: maximum size and age.
        is_active: returns whether a group has members, whose offsets are kept.
        clock: returns the time in seconds since 1970.
    """

    def __init__(
        self, limits: Limits, is_active: Callable[[str], bool], clock: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits
        self._is_active = is_active
        self._clock = clock
        self._groups: OrderedDict[str, GroupOffsets] = OrderedDict()
        self._size = 0

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed) -> ErrorCode:
        """Store an offset; drop the least recently used groups if there is no room."""
        if len(committed.metadata) > MAX_METADATA_SIZE:
            return ErrorCode.offset_metadata_too_large
        known = self._groups.get(group_id)
        before = known.offsets.get((topic, partition)) if known else None
        grown = committed.size - (before.size if before else 0)
        size = (known.size if known else GROUP_SIZE + len(group_id)) + grown
        if size > self._limits.committed_size // LARGEST_PART:
            return ErrorCode.invalid_commit_offset_size
        group = self._used(group_id)
        group.offsets[topic, partition] = committed
        group.change += 1
        self._grow(group, grown)
        self._make_room()
        return ErrorCode.none

    def _used(self, group_id: str) -> GroupOffsets:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = GroupOffsets(self._clock())
            self._grow(group, len(group_id))
            self._size += GROUP_SIZE
        group.used_at = self._clock()
        self._groups.move_to_end(group_id)
        return group

    def _grow(self, group: GroupOffsets, size: int) -> None:
        group.size += size
        self._size += size

    def _make_room(self) -> None:
        while len(self._groups) > self._limits.groups or self._size > self._limits.committed_size:
            self._forget(next((each for each in self._groups if not self._is_active(each)), next(iter(self._groups))))

    def _forget(self, group_id: str) -> None:
        self._size -= self._groups.pop(group_id).size

    def forget_idle(self) -> None:
        """Drop the groups that have been idle for longer than the limit."""
        earliest = self._clock() - self._limits.group_idle_seconds
        idle = [name for name, group in self._groups.items() if group.used_at < earliest and not self._is_active(name)]
        for group_id in idle:
            self._forget(group_id)

    def of(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """Return the committed offsets of a group, by topic and partition."""
        return dict(self._used(group_id).offsets) if group_id in self._groups else {}

    def restore(self, group_id: str, used_at: float, offsets: dict[tuple[str, int], Committed]) -> None:
        """Add a group that was read from disk; callers add the most recently used group last."""
        for (topic, partition), committed in offsets.items():
            self.commit(group_id, topic, partition, committed)
        if group_id in self._groups:
            self._groups[group_id].used_at = min(used_at, self._clock())

    def __iter__(self) -> Iterator[tuple[str, GroupOffsets]]:
        return iter(self._groups.items())

    def __len__(self) -> int:
        return len(self._groups)
