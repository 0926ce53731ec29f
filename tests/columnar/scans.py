"""Holding what the engine delivers against what the reference delivers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from seglog_format.columnar import run
from seglog_format.errors import FormatError
from seglog_format.log import reading, volume
from seglog_format.log.partition import Partition, open_partition
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pytest

ALL_COLUMNS = ("offset", "timestamp", "key", "value", "headers")

Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


def rows_of_batch(batch: Any) -> list[Row]:
    """The rows of an Arrow batch with all columns."""
    batch.validate(full=True)
    import pyarrow as pa

    numbers = batch.column(1).cast(pa.int64()).to_pylist()
    keys, values, headers = (batch.column(number).to_pylist() for number in (2, 3, 4))
    return [
        (offset, -1 if time is None else time, key, value, tuple((pair["key"], pair["value"]) for pair in pairs))
        for offset, time, key, value, pairs in zip(
            batch.column(0).to_pylist(), numbers, keys, values, headers, strict=True
        )
    ]


def outcome(rows: Iterable[list[Row]]) -> tuple[list[Row], str]:
    """What was delivered, and the error that ended it."""
    found: list[Row] = []
    try:
        for some in rows:
            found += some
    except FormatError as error:
        return found, str(error)
    return found, ""


def scanned(partition: Partition, **options: Any) -> tuple[list[Row], str]:
    """What a scan delivers."""

    def rows() -> Iterable[list[Row]]:
        for batch in partition.scan(ALL_COLUMNS, **options):
            yield rows_of_batch(batch)

    return outcome(rows())


def expected(partition: Partition, **options: Any) -> tuple[list[Row], str]:
    """What the reference delivers."""

    def rows() -> Iterable[list[Row]]:
        for each in partition.records(**options):
            pairs = tuple((header.key, header.value) for header in each.headers)
            yield [(each.offset, each.timestamp_ms, each.key, each.value, pairs)]

    with reference_only():
        return outcome(rows())


@contextmanager
def reference_only() -> Iterator[None]:
    """Records come from the reference, however large a log is."""
    places = ((reading, "QUICK_SIZE"), (volume, "VOLUME"), (volume, "SMALL_VOLUME"))
    before = [getattr(module, name) for module, name in places]
    try:
        for module, name in places:
            setattr(module, name, INT64_MAX)
        yield
    finally:
        for (module, name), value in zip(places, before, strict=True):
            setattr(module, name, value)


def assert_equal_reading(path: Path, **scan_options: Any) -> None:
    """Hold scans of a partition directory against the reference, from its start and from its middle."""
    shared = {name: scan_options.pop(name) for name in ("isolation",) if name in scan_options}
    with open_partition(path) as partition:
        wanted = expected(partition, **shared)
        assert scanned(partition, **shared, **scan_options) == wanted
        middle = (partition.log_start_offset + partition.log_end_offset) // 2
        ranges = ({"from_offset": middle}, {"to_offset": middle}, {"from_offset": middle, "to_offset": middle + 5})
        for bounds in ranges:
            assert scanned(partition, **shared, **scan_options, **bounds) == expected(partition, **shared, **bounds)


def segment_directory(directory: Path, data: bytes, base_offset: int = 0) -> Path:
    """A partition directory of one segment."""
    directory.mkdir(exist_ok=True)
    (directory / f"{base_offset:020d}.log").write_bytes(data)
    return directory


def count_judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of the entries that are left to the reference."""
    positions: list[int] = []
    judge = run.Run._judge

    def counted(self: run.Run) -> Any:
        before = self.judged
        stops = yield from judge(self)
        positions.extend([int(self._state[0])] * (self.judged - before))
        return stops

    monkeypatch.setattr(run.Run, "_judge", counted)
    return positions
