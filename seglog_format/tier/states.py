"""States of a remote segment and of a remote partition, and which may follow which (chapter 46)."""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class SegmentState(IntEnum):
    """How far the copying or the deletion of a remote segment has come, by its number in a record."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """How far the deletion of a remote partition has come, by its number in a record."""

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
    """Return whether a segment may go from one state to another; each state may be written again (SEG-RLM-004).

    Args:
        state: the present one, None for a segment that is not known.
        target: the next one.
    """
    return state is target or target in _NEXT[state]
