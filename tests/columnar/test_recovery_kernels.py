"""Recovery plans and rebuilt indexes are the same with compiled code and without, whatever a log holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.batches import patched
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hostile_scan import FULL, changes, with_right_checksum
from test_prefilter import SMALL

from proofs.fuzz import broker_scans as by_either
from proofs.fuzz.broker_scans import broker_scan_by
from proofs.fuzz.random_logs import random_log
from seglog_format.columnar import index_log
from seglog_format.columnar.index_log import ColumnarRecovery
from seglog_format.engine import Engine
from seglog_format.log.index_file import IndexedOffset
from seglog_format.log.listing import list_partition
from seglog_format.log.transactions import Transactions
from seglog_format.recovery.apply import RecoveryOptions, prepare_recovery
from seglog_format.recovery.index_rebuild import rebuilt_indexes
from seglog_format.recovery.index_settings import IndexSettings
from seglog_format.recovery.plan import plan_for_partition
from seglog_format.recovery.segment_scan import SegmentSideFiles, scan_segment, side_files_of

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.engine import RecoveryKernels

KERNELS = ColumnarRecovery()
SETTINGS = [IndexSettings(0), IndexSettings(200), IndexSettings(100, IndexedOffset.FIRST)]
BEFORE = patched(SMALL["two"], 0, "q", 0, seal=False)
AFTER = patched(SMALL["abort"], 0, "q", 50, seal=False)


def side_files(
    data: bytes, base_offset: int, chosen: IndexSettings, kernels: RecoveryKernels | None, end: int | None = None
) -> tuple[SegmentSideFiles, Transactions]:
    transactions = Transactions(open_offsets={7: 0, 9: 1})
    found = side_files_of(
        memoryview(data), base_offset, chosen, transactions=transactions, end=end, path="p", kernels=kernels
    )
    return found, Transactions(transactions.aborted, transactions.open_offsets)


def broker_scans(data: bytes, base_offset: int, chosen: IndexSettings, kernels: RecoveryKernels | None) -> list[object]:
    found: list[object] = []
    for known in ({}, {7: 0}, {8: 1}):
        transactions = Transactions(open_offsets=dict(known))
        found.append(broker_scan_by(kernels, memoryview(data), base_offset, chosen, transactions))
        found.append((transactions.aborted, transactions.open_offsets))
    return found


def assert_same(data: bytes, base_offset: int = 0) -> None:
    view = memoryview(data)
    assert scan_segment(view, base_offset, "p", kernels=KERNELS) == scan_segment(view, base_offset, "p"), data.hex()
    for chosen in SETTINGS:
        assert broker_scans(data, base_offset, chosen, KERNELS) == broker_scans(data, base_offset, chosen, None), (
            data.hex()
        )
        for end in (None, len(data) * 2 // 3):
            expected = side_files(data, base_offset, chosen, None, end)
            assert side_files(data, base_offset, chosen, KERNELS, end) == expected, data.hex()


@each_of("name", SMALL)
def test_every_change_recovers_to_the_same(name: str) -> None:
    entry = patched(SMALL[name], 0, "q", 4, seal=False)
    entry = with_right_checksum(entry) if entry[16] == 2 else entry
    every = 1 if FULL else 6
    for number, changed in enumerate(changes(entry)):
        if number % every == 0:
            assert_same(BEFORE + changed + AFTER if number % 3 else changed)


@pytest.mark.parametrize("base_offset", [0, 1, 2**31, 2**63 - 1])
def test_offsets_are_held_against_the_segment(base_offset: int) -> None:
    for data in SMALL.values():
        for offset in (0, 2**31 - 1, 2**31, 2**63 - 1):
            assert_same(patched(data, 0, "q", offset, seal=False) + data, base_offset)


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=3))
def test_logs_by_chance_recover_to_the_same(seed: int, flips: list[tuple[int, int]]) -> None:
    log = random_log(seed)
    data = bytearray(log.data)
    for flipped_byte, value in flips:
        data[flipped_byte % len(data)] = value
    assert_same(bytes(data), log.base_offset)


def test_parts_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_log, "ROWS", 3)
    for seed in range(30):
        log = random_log(seed)
        assert_same(log.data, log.base_offset)


def test_a_broker_scan_without_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_either, "broker_scan", None)
    for seed in range(30):
        log = random_log(seed)
        if not log.has_messages:
            broker_scans(log.data, log.base_offset, SETTINGS[0], KERNELS)


def test_regular_logs_are_indexed_without_the_reference() -> None:
    for seed in range(30):
        log = random_log(seed)
        found = KERNELS.indexed(memoryview(log.data), log.base_offset, log.interval_bytes, stores_first_offset=False)
        assert found is not None
        assert found.end == len(log.data)


def test_sound_entries_are_passed_over() -> None:
    for seed in range(30):
        log = random_log(seed)
        sound = KERNELS.sound_entries(memoryview(log.data), log.base_offset)
        position, last_offset = sound.after(0, log.base_offset - 1)
        assert position == len(log.data)
        assert last_offset + 1 == scan_segment(memoryview(log.data), log.base_offset).next_offset


def test_producers_outside_of_transactions_are_named() -> None:
    data = SMALL["transactional"] + patched(SMALL["producer"], 0, "q", 1, seal=False)
    found = KERNELS.indexed(memoryview(data), 0, 4096, stores_first_offset=False)
    assert found is not None
    events = [event[0] for event in found.transaction_events()]
    assert found.producers_outside() & set(events)


def partitions(root: Path) -> list[Path]:
    return [path for path in (root, *root.iterdir()) if path.is_dir() and any(path.glob("*.log"))]


@each_of("name", authentic_names())
def test_authentic_directories_recover_to_the_same(name: str) -> None:
    for path in partitions(authentic(name)):
        listing = list_partition(path)
        for interval in (None, 0):
            expected = list(rebuilt_indexes(listing, interval_bytes=interval, engine=Engine.REFERENCE))
            assert list(rebuilt_indexes(listing, interval_bytes=interval, engine=Engine.COLUMNAR)) == expected
        for is_full_scan in (False, True):
            options = {"is_full_scan": is_full_scan, "like_broker": not is_full_scan}
            prepared = prepare_recovery(path, options=RecoveryOptions(**options, engine=Engine.REFERENCE))
            assert prepare_recovery(path, options=RecoveryOptions(**options, engine=Engine.COLUMNAR)) == prepared
        assert plan_for_partition(path, engine=Engine.COLUMNAR) == plan_for_partition(path, engine=Engine.REFERENCE)
