"""Holding what the engine delivers against what the reference delivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from proofs.fuzz.delivered_rows import COLUMNS, Row, row_of, rows_of
from seglog_format import Engine, engine
from seglog_format.columnar import run
from seglog_format.errors import FormatError
from seglog_format.log.partition import Partition, open_partition
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest


def take_kernels(patch: pytest.MonkeyPatch) -> None:
    """Let the columnar engine read all records, the first batch included, whatever the size of a log."""
    patch.setattr(engine, "COLUMNAR_SIZE", 0)
    patch.setattr(engine.Choice, "is_asked_for", True)


def outcome(rows: Iterable[list[Row]]) -> tuple[list[Row], str]:
    """Return what was delivered, and the error that ended it."""
    found: list[Row] = []
    try:
        for some in rows:
            found += some
    except FormatError as error:
        return found, str(error)
    return found, ""


def scanned(partition: Partition, **options: Any) -> tuple[list[Row], str]:
    """Yield what a scan delivers."""

    def rows() -> Iterable[list[Row]]:
        for batch in partition.scan(COLUMNS, **options):
            yield list(rows_of([batch]))

    return outcome(rows())


def expected(partition: Partition, **options: Any) -> tuple[list[Row], str]:
    """Yield what the reference delivers."""

    def rows() -> Iterable[list[Row]]:
        for each in partition.records(**options, engine=Engine.REFERENCE):
            yield [row_of(each)]

    return outcome(rows())


def assert_equal_reading(path: Path, **scan_options: Any) -> None:
    """Hold scans of a partition directory against the reference, from its start and from its middle."""
    shared = {name: scan_options.pop(name) for name in ("isolation",) if name in scan_options}
    with open_partition(path) as partition:
        wanted = expected(partition, **shared)
        assert scanned(partition, **shared, **scan_options) == wanted
        for bounds in ranges_of(partition):
            part = expected(partition, **shared, **bounds) if wanted[1] else (within(wanted[0], **bounds), "")
            assert scanned(partition, **shared, **scan_options, **bounds) == part


def ranges_of(partition: Partition) -> tuple[dict[str, int], ...]:
    """Return a range from the middle of a log, one up to there, and a short one."""
    middle = (partition.log_start_offset + partition.log_end_offset) // 2
    return {"from_offset": middle}, {"to_offset": middle}, {"from_offset": middle, "to_offset": middle + 5}


def within(whole: list[Any], *, from_offset: int = 0, to_offset: int = INT64_MAX) -> list[Any]:
    """Return the rows or records of a range among all: the reference, which is slow, reads a sound log once."""
    return [each for each in whole if from_offset <= (each[0] if isinstance(each, tuple) else each.offset) < to_offset]


def segment_directory(directory: Path, data: bytes, base_offset: int = 0) -> Path:
    """Return a partition directory of one segment."""
    directory.mkdir(exist_ok=True)
    (directory / f"{base_offset:020d}.log").write_bytes(data)
    return directory


def count_fallbacks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the entries that are left to the reference."""
    positions: list[int] = []
    fall_back = run.Run._fall_back

    def counted(self: run.Run) -> Any:
        statistics = self._request.statistics
        before = statistics.fallback_count
        stops = yield from fall_back(self)
        positions.extend([int(self._state[0])] * (statistics.fallback_count - before))
        return stops

    monkeypatch.setattr(run.Run, "_fall_back", counted)
    return positions
