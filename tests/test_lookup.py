"""Chapter 60: every answer of a lookup equals that of a full scan, whatever the indexes say."""

from __future__ import annotations

import random
import shutil
from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING

import pytest
from full_scan import Log, agrees_with_bytes, expected_logs, sampled
from support import authentic, authentic_expected, authentic_names

from seglog_format import OffsetOutOfRangeError, open_partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format import Partition

UNDAMAGED_CRASHES = ("crash-kill", "crash-txn")
MANY = 1300
"""So many offsets of a case are read at; only the cases with batches of thousands of records have more."""


def is_undamaged(name: str) -> bool:
    case = name.partition("/")[2]
    return case != "root" and (not case.startswith("crash-") or case in UNDAMAGED_CRASHES)


NAMES = [name for name in authentic_names() if is_undamaged(name)]


@cache
def logs(name: str) -> list[tuple[Path, Log]]:
    """Partition directories of a case with what a full scan finds in them."""
    found = expected_logs(authentic_expected(name))
    return [(authentic(name) / directory, log) for directory, log in sorted(found.items())]


def opened(name: str, *, trust_indexes: bool = False) -> Iterator[tuple[Log, Partition]]:
    for directory, log in logs(name):
        with open_partition(directory, trust_indexes=trust_indexes) as partition:
            yield log, partition


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


@pytest.mark.parametrize("name", NAMES)
def test_the_full_scan_is_no_fiction(name: str) -> None:
    for directory, log in logs(name):
        assert agrees_with_bytes(log, directory)


@pytest.mark.req("SEG-LKP-002")
@pytest.mark.parametrize("name", NAMES)
def test_position_of_every_offset(name: str) -> None:
    for log, partition in opened(name):
        check_positions(log, partition, list(log.offsets()))


@pytest.mark.req("SEG-LKP-001", "SEG-LKP-002", "SEG-LKP-003", "SEG-LKP-004", "SEG-LKP-005")
@pytest.mark.parametrize("name", NAMES)
def test_read_at_every_offset(name: str) -> None:
    for log, partition in opened(name):
        check_reads(log, partition, sampled(log.offsets(), MANY, name))


@pytest.mark.req("SEG-LKP-008")
@pytest.mark.parametrize("name", NAMES)
def test_every_timestamp_and_its_neighbours(name: str) -> None:
    for log, partition in opened(name):
        check_timestamps(log, partition, log.timestamps())
        largest = partition.offset_for_timestamp(-3)
        assert (largest and astuple(largest)) == log.first_of_largest()


@pytest.mark.parametrize("name", NAMES)
def test_trusted_indexes_of_brokers_lead_to_the_same_answers(name: str) -> None:
    for log, partition in opened(name, trust_indexes=True):
        check_positions(log, partition, sampled(log.offsets(), 60, name))
        check_reads(log, partition, sampled(log.offsets(), 60, name))
        check_timestamps(log, partition, sampled(log.timestamps(), 60, name))
        assert partition.log_end_offset == log.log_end_offset
