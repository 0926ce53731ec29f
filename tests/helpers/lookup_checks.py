"""Lookups held against a full scan."""

from __future__ import annotations

from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pytest

from helpers.full_scan import Log, expected_logs
from helpers.support import authentic, authentic_expected, authentic_names
from seglog_format.errors import FormatError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.types import Partition


T = TypeVar("T")

UNDAMAGED_CRASHES = ("crash-kill", "crash-txn")


def is_undamaged(name: str) -> bool:
    case = name.partition("/")[2]
    return case != "root" and (not case.startswith("crash-") or case in UNDAMAGED_CRASHES)


UNDAMAGED = [name for name in authentic_names() if is_undamaged(name)]


@cache
def logs(name: str) -> list[tuple[Path, Log]]:
    """Partition directories of a case with what a full scan finds in them."""
    found = expected_logs(authentic_expected(name))
    return [(authentic(name) / directory, log) for directory, log in sorted(found.items())]


def until_error(values: Iterable[T]) -> list[T]:
    """Return what comes before a `FormatError`, which must come."""
    delivered: list[T] = []
    with pytest.raises(FormatError):
        delivered.extend(values)
    return delivered


def check_positions(log: Log, partition: Partition, offsets: list[int]) -> None:
    assert [segment.base_offset for segment in partition.segments] == [segment.base_offset for segment in log.segments]
    for segment, full in zip(partition.segments, log.segments, strict=True):
        found = {each: segment.position_of(each, trust_index=partition.trust_indexes) for each in offsets}
        assert found == full.positions_of(offsets)


def check_reads(log: Log, partition: Partition, offsets: list[int]) -> None:
    for offset, batch in log.first_batches(offsets).items():
        if not log.log_start_offset <= offset <= log.log_end_offset:
            with pytest.raises(OffsetOutOfRangeError):
                partition.read(offset)
            continue
        fetch = partition.read(offset, 1)
        if batch is None:
            assert (fetch.batches, fetch.records, fetch.next_offset) == ((), (), offset)
            continue
        (first,) = fetch.batches
        shown = [] if batch.is_control else [each for each, _ in batch.records if each >= offset]
        assert (first.position, first.base_offset) == (batch.position, batch.base_offset)
        assert [record.offset for record in fetch.records] == shown
        assert fetch.next_offset == batch.last_offset + 1


def check_timestamps(log: Log, partition: Partition, timestamps: list[int]) -> None:
    found = {each: partition.offset_for_timestamp(each) for each in timestamps}
    assert {each: answer and astuple(answer) for each, answer in found.items()} == log.first_not_older(timestamps)
