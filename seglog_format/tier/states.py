"""States of remote segments and of remote partitions, and the allowed transitions (chapter 46)."""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class SegmentState(IntEnum):
    """The progress of copying or deleting a remote segment, with the numbers that records use."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """The progress of deleting a remote partition, with the numbers that records use."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


_NEXT: Final[Mapping[SegmentState | None, frozenset[SegmentState]]] = MappingProxyType(
    {
        None: frozenset({SegmentState.COPY_SEGMENT_STARTED}),
        SegmentState.COPY_SEGMENT_STARTED: frozenset(
            {SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED}
        ),
        SegmentState.COPY_SEGMENT_FINISHED: frozenset({SegmentState.DELETE_SEGMENT_STARTED}),
        SegmentState.DELETE_SEGMENT_STARTED: frozenset({SegmentState.DELETE_SEGMENT_FINISHED}),
        SegmentState.DELETE_SEGMENT_FINISHED: frozenset(),
    }
)


def may_follow(state: SegmentState | None, target: SegmentState) -> bool:
    """Return whether one state may follow another; each state may also follow itself (SEG-RLM-004).

    Args:
        state: the current state; None for an unknown segment.
        target: the next state.
    """
    return state is target or target in _NEXT[state]
