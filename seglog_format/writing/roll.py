"""Reasons to roll a log, and the base offset of the new segment (chapter 70)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from seglog_format.model import INT32_MAX
from seglog_format.state.config import EARLY, BrokerGeneration

if TYPE_CHECKING:
    from seglog_format.state.config import LogConfig


class RollReason(Enum):
    """Reason to roll a log; if several hold, the first in this order is given."""

    SIZE = "size"
    """The segment would exceed `segment.bytes` (SEG-ROL-002)."""

    TIME = "time"
    """Its records would span more than `segment.ms` (SEG-ROL-003)."""

    OFFSET_INDEX_FULL = "offset index full"
    """The offset index has no free slot (SEG-ROL-005)."""

    TIME_INDEX_FULL = "time index full"
    """The time index has only the slot for its final entry (SEG-ROL-017)."""

    OFFSET_SPAN = "offset span"
    """An offset would be more than 2147483647 above the base offset (SEG-ROL-006)."""

    ASKED = "asked"
    """The caller requested it."""


@dataclass(frozen=True, slots=True)
class ActiveState:
    """The values that decide when a segment is rolled.

    Attributes:
        base_offset: of the segment.
        size: size of its log in bytes.
        first_timestamp_ms: largest timestamp of the first append; -1 if it has none.
        created_ms: time when the segment was opened.
        jitter_ms: how much earlier than `segment.ms` it is rolled.
        is_offset_index_full: whether the offset index has no free slot.
        is_time_index_full: whether the time index has at most one free slot.
    """

    base_offset: int
    size: int
    first_timestamp_ms: int
    created_ms: int
    jitter_ms: int = 0
    is_offset_index_full: bool = False
    is_time_index_full: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """The values of one append that the decision to roll needs.

    Attributes:
        size: of all entries, in bytes.
        max_timestamp_ms: largest timestamp, or -1.
        first_offset: first offset; for a wrapper on a follower, its stored offset, which needs no decompression.
        last_offset: offset of the last record.
        magic: of the first entry.
    """

    size: int
    max_timestamp_ms: int
    first_offset: int
    last_offset: int
    magic: int = 2


def roll_reason(state: ActiveState, incoming: Incoming, config: LogConfig, now_ms: int) -> RollReason | None:
    """Return why a segment must be rolled before an append; None if it need not (SEG-ROL-001).

    Args:
        state: of the active segment.
        incoming: the entries to append.
        config: of the log.
        now_ms: the current time.
    """
    if state.size > config.segment_bytes - incoming.size:
        return RollReason.SIZE
    if state.size > 0 and _span_ms(state, incoming, config, now_ms) > config.roll_ms - state.jitter_ms:
        return RollReason.TIME
    if state.is_offset_index_full:
        return RollReason.OFFSET_INDEX_FULL
    if state.is_time_index_full:
        return RollReason.TIME_INDEX_FULL
    if not 0 <= incoming.last_offset - state.base_offset <= INT32_MAX:
        return RollReason.OFFSET_SPAN
    return None


def _span_ms(state: ActiveState, incoming: Incoming, config: LogConfig, now_ms: int) -> int:
    """Return the time that the segment spans, by record timestamps or else by the clock (SEG-ROL-003, SEG-ROL-004)."""
    if config.generation.has_time_index and state.first_timestamp_ms >= 0:
        return incoming.max_timestamp_ms - state.first_timestamp_ms
    return now_ms - state.created_ms


def new_base_offset(next_offset: int, incoming: Incoming, generation: BrokerGeneration) -> int:
    """Return the base offset of the segment that receives an append (SEG-ROL-007).

    Args:
        next_offset: log end offset.
        incoming: the entries to append; on a leader they begin at the log end offset.
        generation: of brokers to write like.
    """
    if generation in {BrokerGeneration.V0_8, BrokerGeneration.V0_10_1}:
        return next_offset
    is_exact = incoming.magic >= 2 and generation not in EARLY  # noqa: PLR2004 - the rule is about this number
    first = incoming.first_offset if is_exact else incoming.last_offset - INT32_MAX
    return max(next_offset, first)


def jitter_ms(config: LogConfig, fraction: float) -> int:
    """Return how much earlier than `segment.ms` a segment is rolled (SEG-ROL-008).

    Args:
        config: of the log.
        fraction: a random number from 0 up to, not including, 1.
    """
    return int(fraction * min(config.segment_jitter_ms, config.roll_ms))
