"""Findings about indexes and snapshots that are no files, as the checks of files yield them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from seglog_format.checks.finding import findings_of
from seglog_format.checks.side_files import (
    OffsetIndexSubject,
    SnapshotSubject,
    TimeIndexSubject,
    TransactionIndexSubject,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.checks.finding import Finding
    from seglog_format.checks.log_file import LogOutline
    from seglog_format.model import AbortedTxn, OffsetPosition, ProducerStateEntry, TimestampOffset


def _index(base_offset: int, entries: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - stands for indexes of three kinds
    """Return what the checks ask of an opened index; each slot has one byte, so a position is the number of a slot."""
    layout = SimpleNamespace(size=1)
    return SimpleNamespace(
        path="index", base_offset=base_offset, layout=layout, file_size=0, trailing_zero_count=0, entries=entries
    )


def offset_index_violations(entries: Sequence[OffsetPosition], base_offset: int, log: LogOutline) -> Iterator[Finding]:
    """Check all rules of an offset index, requirement by requirement."""
    return findings_of(OffsetIndexSubject(_index(base_offset), entries, log))


def time_index_violations(
    entries: Sequence[TimestampOffset], base_offset: int, log: LogOutline, *, is_active: bool
) -> Iterator[Finding]:
    """Check all rules of a time index, requirement by requirement."""
    return findings_of(TimeIndexSubject(_index(base_offset), entries, log, is_active))


def transaction_index_violations(
    entries: Sequence[AbortedTxn], base_offset: int, markers: Mapping[int, int] | None = None
) -> Iterator[Finding]:
    """Check all rules of a transaction index; `markers` is None if the log is missing or damaged."""
    return findings_of(TransactionIndexSubject(_index(base_offset, entries), markers))


def producer_snapshot_violations(producers: Sequence[ProducerStateEntry], offset: int) -> Iterator[Finding]:
    """Check all rules of a snapshot with a right checksum; ``offset`` is the number in its name."""
    return findings_of(SnapshotSubject("snapshot", producers, offset))
