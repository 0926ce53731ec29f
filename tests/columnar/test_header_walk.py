"""What a lookup knows of a segment is the same whether kernels or the reference have walked over it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.scans import segment_directory
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.fuzz.random_logs import random_log
from seglog_format import open_partition
from seglog_format.errors import FormatError
from seglog_format.log import entry_table
from seglog_format.log.entry_table import EntryTable
from seglog_format.log.listing import list_partition
from seglog_format.log.segment import LogSegment
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.listing import SegmentFiles

KNOWN = ("positions", "last_offsets", "max_timestamps", "running_maxima", "position", "tail", "next_offset")


def table_of(files: SegmentFiles, target: int, patch: pytest.MonkeyPatch, *, has_kernels: bool, mapped: bool) -> object:
    """All that is known once an offset was looked for, and then the end."""
    patch.setattr(entry_table, "_is_worth_it", lambda *_: has_kernels)
    found: list[object] = []
    with LogSegment(files, mapped=mapped) as segment:
        found.append(segment.next_offset)
    with LogSegment(files, mapped=mapped) as segment:
        with suppress(FormatError):  # which `damage` tells
            number = segment.number_of(target)
            found.append(None if number is None else segment.entries.positions[number])
        table = segment.entries
        found.append([getattr(table, name) for name in KNOWN])
        found.append(str(table.damage))
    return found


def assert_same(path: Path, target: int, *, mapped: bool = False) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for files in list_partition(path).segments:
            wanted = table_of(files, target, patch, has_kernels=False, mapped=mapped)
            assert table_of(files, target, patch, has_kernels=True, mapped=mapped) == wanted


@settings(max_examples=100)
@given(
    seed=st.integers(0, 10**6),
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 200),
    where=st.integers(0, 100),
)
def test_random_logs(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: list[tuple[int, int]], cut: int, where: int
) -> None:
    log = random_log(seed)
    data = bytearray(log.data)
    for flipped_byte, value in flips:
        data[flipped_byte % len(data)] = value
    path = segment_directory(tmp_path_factory.mktemp("t") / "t-0", bytes(data[: len(data) - cut]), log.base_offset)
    assert_same(path, log.base_offset + where, mapped=bool(seed % 2))


@each_of("name", authentic_names())
def test_logs_of_brokers(name: str) -> None:
    for path in authentic(name).iterdir():
        if path.is_dir() and any(path.glob("*.log")):
            assert_same(path, INT64_MAX)


def test_the_end_of_a_large_log_is_found_by_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(1)
    path = segment_directory(tmp_path / "t-0", log.data, log.base_offset)
    with open_partition(path) as partition:
        wanted = partition.log_end_offset
    monkeypatch.setattr(entry_table, "_is_worth_it", lambda *_: True)
    monkeypatch.setattr(EntryTable, "_add", None)  # what Python adds one by one
    with open_partition(path) as partition:
        assert partition.log_end_offset == wanted


def test_a_single_lookup_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(1)
    path = segment_directory(tmp_path / "t-0", log.data, log.base_offset)
    monkeypatch.setattr(entry_table, "_is_worth_it", lambda *_: False)
    monkeypatch.setattr(entry_table, "engine", None)
    with open_partition(path) as partition:
        assert partition.log_end_offset > log.base_offset


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), flips=st.lists(st.integers(0, 10**6), max_size=3), steps=st.integers(1, 4))
def test_checksums_are_those_that_the_reference_verifies(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: list[int], steps: int
) -> None:
    log = random_log(seed)
    data = bytearray(log.data)
    for flipped_byte in flips:
        data[flipped_byte % len(data)] ^= 1
    path = segment_directory(tmp_path_factory.mktemp("t") / "t-0", bytes(data), log.base_offset)
    with pytest.MonkeyPatch.context() as patch:
        wanted = verified(path, steps, patch, has_kernels=False)
        assert verified(path, steps, patch, has_kernels=True) == wanted


def verified(path: Path, steps: int, patch: pytest.MonkeyPatch, *, has_kernels: bool) -> list[str]:
    """Return the first wrong checksum, or none, as it is met in some steps."""
    patch.setattr(entry_table, "_is_worth_it", lambda *_: has_kernels)
    found: list[str] = []
    with LogSegment(list_partition(path).segments[0]) as segment:
        count = len(segment.entries.positions)
        for step in range(1, steps + 1):
            try:
                segment.verify_entries(min(1, count), max(min(1, count), count * step // steps))
            except FormatError as error:
                found.append(str(error))
    return found


def test_kernels_verify_what_a_timestamp_lookup_passes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = random_log(1)
    path = segment_directory(tmp_path / "t-0", log.data, log.base_offset)
    with open_partition(path) as partition:
        wanted = partition.offset_for_timestamp(INT64_MAX)
    monkeypatch.setattr(entry_table, "_is_worth_it", lambda *_: True)
    monkeypatch.setattr(LogSegment, "verify_entry", None)  # what Python verifies one by one
    with open_partition(path) as partition:
        assert partition.offset_for_timestamp(INT64_MAX) == wanted
