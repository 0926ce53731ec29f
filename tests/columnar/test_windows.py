"""Logs that are read through windows give what mapped ones give, wherever the windows cut."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.scans import count_fallbacks, expected, outcome, scanned, segment_directory, take_kernels
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from helpers.whole_table import batch_table

from proofs.fuzz.delivered_rows import COLUMNS, row_of, rows_of
from proofs.fuzz.random_logs import random_log
from seglog_format.columnar import windows
from seglog_format.columnar.layout import MIN_SHOWN_SIZE
from seglog_format.columnar.ranges import position_of
from seglog_format.columnar.run import RecordRun
from seglog_format.log.partition import open_partition
from seglog_format.model import INT64_MAX
from seglog_format.storage import byte_source
from seglog_format.storage.byte_source import MemoryBytes, Window, open_bytes

if TYPE_CHECKING:
    from pathlib import Path

WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"layout": "binary"},
    {"isolation": "read_committed", "batch_rows": 7},
    {"threads": 2},
)
SIZES = (61, 100, 1000, 4096)


@pytest.fixture(params=SIZES)
def small_windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    size: int = request.param
    windows_of(size, monkeypatch)
    return size


def windows_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (windows, "WINDOW_SIZE"),
        (windows, "FIRST_SIZE"),
        (byte_source, "WINDOW_SIZE"),
        (byte_source, "FIRST_WINDOW"),
    ):
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, size)


def assert_same_through_windows(path: Path, on: dict[str, Any]) -> None:
    shared = {name: on[name] for name in ("isolation",) if name in on}
    with open_partition(path) as partition, open_partition(path, mapped=True) as mapped:
        wanted = expected(mapped, **shared)
        assert scanned(partition, **on) == wanted
        middle = (mapped.log_start_offset + mapped.log_end_offset) // 2
        assert scanned(partition, **on, from_offset=middle) == expected(mapped, **shared, from_offset=middle)


@each_of("name", authentic_names()[::3])
def test_authentic_logs_read_the_same_and_without_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    windows_of(4096, monkeypatch)
    fallbacks = count_fallbacks(monkeypatch)
    for path in sorted({path.parent for path in authentic(name).rglob("*.log")}):
        with open_partition(path) as partition, open_partition(path, mapped=True) as mapped:
            for way in ({}, {"layout": "large_binary", "threads": 2}):
                wanted = outcome([row] for row in rows_of(mapped.scan(COLUMNS)))
                assert outcome([row] for row in rows_of(partition.scan(COLUMNS, **way))) == wanted
    assert not fallbacks, "an entry across the end of a window is not for the reference"


@pytest.mark.filterwarnings(
    "ignore:.*nothing readable:seglog_format.errors.MissingOffsetsWarning"
)  # segments are damaged
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("is_damaged", [False, True], ids=["whole", "damaged"])
def test_logs_by_chance_read_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_damaged: bool
) -> None:
    windows_of(SIZES[seed % len(SIZES)], monkeypatch)
    log, dice = random_log(seed), random.Random(seed)  # noqa: S311
    data = bytearray(log.data)
    if is_damaged and data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        del data[len(data) - dice.choice((0, 0, 1, 30)) :]
    directory = segment_directory(tmp_path / "chance-0", bytes(data), log.base_offset)
    assert_same_through_windows(directory, WAYS[seed % len(WAYS)])
    with open_partition(directory) as partition, open_partition(directory, mapped=True) as mapped:
        reported: dict[bool, list[str]] = {True: [], False: []}
        found = {
            each: scanned(one, on_corrupt=lambda error, each=each: reported[each].append(str(error)))
            for each, one in ((True, partition), (False, mapped))
        }
        assert found[True] == found[False]
        assert reported[True] == reported[False]


@pytest.mark.parametrize("seed", range(4))
def test_objects_of_windows_are_the_same(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows_of(1000, monkeypatch)
    runs: list[RecordRun] = []
    begin = RecordRun.__init__

    def noted(self: RecordRun, *arguments: Any) -> None:
        runs.append(self)
        begin(self, *arguments)

    monkeypatch.setattr(RecordRun, "__init__", noted)
    log = random_log(seed)
    directory = segment_directory(tmp_path / "chance-0", log.data, log.base_offset)
    with open_partition(directory, mapped=True) as mapped:
        wanted = expected(mapped)
    take_kernels(monkeypatch)
    with open_partition(directory) as partition:
        found = outcome([row] for row in map(row_of, partition.records()))
    assert runs, "the reference has read"
    assert found == wanted


@pytest.mark.parametrize("seed", range(6))
def test_tables_and_places_are_the_same(seed: int, tmp_path: Path, small_windows: int) -> None:
    log = random_log(seed)
    path = tmp_path / "0.log"
    path.write_bytes(log.data)
    with open_bytes(path) as source:
        found, wanted = batch_table(source), batch_table(log.data)
        assert found.end == wanted.end
        assert (found.rows == wanted.rows).all()
        assert len(source.window(0).data) <= max(small_windows, int(wanted.column("size").max(initial=0)))
        for last in wanted.column("last_offset").tolist()[::5]:
            allowed = (log.base_offset, INT64_MAX)
            assert position_of(source, allowed, last) == position_of(log.data, allowed, last)


class NotedViews(MemoryBytes):
    """Bytes that are only read by parts, each of which is noted."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.views: list[tuple[int, int]] = []

    def view(self, start: int, end: int) -> memoryview:
        self.views.append((start, end))
        return super().view(start, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        return Window(position, super().view(position, position + at_least))


@pytest.mark.parametrize("seed", range(4))
def test_a_window_ends_at_a_multiple_of_its_size_unless_an_entry_goes_on(seed: int, small_windows: int) -> None:
    log = random_log(seed)
    source = NotedViews(log.data)
    table = batch_table(log.data)
    assert (batch_table(source).rows == table.rows).all()
    ends = {int(position) + int(size) for position, size in zip(*map(table.column, ("position", "size")), strict=True)}
    for start, end in source.views:
        crosses = end > start - start % small_windows + small_windows
        assert not crosses or end in ends or end - start <= MIN_SHOWN_SIZE
