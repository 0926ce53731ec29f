"""When a segment ends (chapter 70)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_algorithms.entries import MOST_AHEAD

if TYPE_CHECKING:
    from seglog_algorithms.appending import Settings
    from seglog_algorithms.writing import Segment


@dataclass(frozen=True, slots=True)
class Active:
    """What a roll depends on in the active segment; `first_timestamp_ms` is where its time begins (SEG-ROL-004)."""

    base_offset: int
    size: int
    first_timestamp_ms: int = -1
    created_ms: int = 0
    jitter_ms: int = 0
    is_offset_index_full: bool = False
    is_time_index_full: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """An append."""

    size: int
    max_timestamp_ms: int
    first_offset: int
    last_offset: int
    magic: int = 2


def roll_reason(active: Active | Segment, incoming: Incoming, settings: Settings, now_ms: int) -> str | None:
    """Return why a segment ends before an append (SEG-ROL-001); None if it continues."""
    if active.size + incoming.size > settings.segment_bytes:  # SEG-ROL-002
        return "size"
    if active.size > 0 and age_ms(active, incoming, settings, now_ms) > roll_ms(settings) - active.jitter_ms:
        return "time"  # SEG-ROL-003
    if active.is_offset_index_full:  # SEG-ROL-005
        return "offset index full"
    if active.is_time_index_full:  # SEG-ROL-017
        return "time index full"
    if not 0 <= incoming.last_offset - active.base_offset <= MOST_AHEAD:  # SEG-ROL-006
        return "offset span"
    return None


def roll_ms(settings: Settings) -> int:
    """Return the time after which a segment ends (SEG-ROL-003)."""
    return min(settings.segment_ms, settings.max_compaction_lag_ms) if settings.is_compacted else settings.segment_ms


def age_ms(active: Active | Segment, incoming: Incoming, settings: Settings, now_ms: int) -> int:
    """Return the age of a segment at an append (SEG-ROL-004)."""
    if settings.generation != "0.8" and active.first_timestamp_ms >= 0:
        return incoming.max_timestamp_ms - active.first_timestamp_ms
    return now_ms - active.created_ms


def new_base_offset(end: int, incoming: Incoming, settings: Settings) -> int:
    """Return the base offset of the segment that an append begins (SEG-ROL-007)."""
    if settings.generation in {"0.8", "0.10.1"}:
        return end
    is_known = incoming.magic == 2 and settings.generation != "0.11"
    return max(end, incoming.first_offset if is_known else incoming.last_offset - MOST_AHEAD)


def jitter_ms(settings: Settings, fraction: float) -> int:
    """Return the jitter of a segment, for a random number from 0 up to, not including, 1 (SEG-ROL-008)."""
    return int(fraction * min(settings.segment_jitter_ms, roll_ms(settings)))
