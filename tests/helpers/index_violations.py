"""All rules of an index at once, as the checks ask for them one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.log import index_rules as rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.log.index_rules import LogOutline, Violation
    from seglog_format.model import AbortedTxn, OffsetPosition, TimestampOffset
    from seglog_format.record_model import ProducerStateEntry


def offset_index_violations(
    entries: Sequence[OffsetPosition], base_offset: int, log: LogOutline
) -> Iterator[Violation]:
    """Check all rules of an offset index, requirement by requirement.

    Args:
        entries: all slots before the trailing zero ones.
        base_offset: of the segment.
        log: the segment's log.
    """
    yield from rules.relative_offsets_not_negative(entries, base_offset)
    yield from rules.positions_start_entries(entries, log)
    yield from rules.offsets_increase(entries)
    yield from rules.positions_increase(entries)
    yield from rules.offsets_match_positions(entries, base_offset, log)


def time_index_violations(
    entries: Sequence[TimestampOffset], base_offset: int, log: LogOutline, *, is_active: bool
) -> Iterator[Violation]:
    """Check all rules of a time index, requirement by requirement.

    Args:
        entries: all slots before the trailing zero ones.
        base_offset: of the segment.
        log: the segment's log.
        is_active: the segment is the last of its partition, whose index need not be finished.
    """
    yield from rules.timestamps_increase(entries)
    yield from rules.time_offsets_do_not_decrease(entries, base_offset)
    yield from rules.later_timestamps_follow(entries, log)
    yield from rules.timestamps_match_log(entries, log)
    if not is_active:
        yield from rules.last_timestamp_is_largest(entries, log)


def transaction_index_violations(
    entries: Sequence[AbortedTxn], base_offset: int, markers: Mapping[int, int] | None = None
) -> Iterator[Violation]:
    """Check all rules of a transaction index, requirement by requirement.

    Args:
        entries: of the index.
        base_offset: of the segment.
        markers: as `aborts_have_markers`; None if the log is missing or damaged.
    """
    yield from rules.aborts_not_below_segment(entries, base_offset)
    yield from rules.aborts_in_order(entries)
    yield from rules.aborted_from_first_to_last(entries)
    if markers is not None:
        yield from rules.aborts_have_markers(entries, markers)
    yield from rules.last_stable_offsets_in_range(entries)


def producer_snapshot_violations(producers: Sequence[ProducerStateEntry], offset: int | None) -> Iterator[Violation]:
    """Check all rules of a snapshot with a right checksum; ``offset`` is the number in its name, if known."""
    yield from rules.producers_are_sound(producers)
    if offset is not None:
        yield from rules.snapshot_offsets_below_name(producers, offset)
