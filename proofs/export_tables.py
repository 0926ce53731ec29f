"""Tables of exports as their readers see them, at any moment."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

CATALOG_FILE: Final = "catalog.db"
TABLE_NAME: Final = "seglog.records"
COLUMNS: Final = ("offset", "timestamp", "timestamp_type", "key", "value", "leader_epoch", "position")
"""What is compared."""


class Table(NamedTuple):
    """A kind of table, and how others see it.

    Attributes:
        name: of the format.
        visible: returns how many rows readers see, and what is wrong with them.
        rows: returns all rows by their offsets.
        left: returns files that nobody counts.
    """

    name: str
    visible: Callable[[Path], tuple[int, str]]
    rows: Callable[[Path], pa.Table]
    left: Callable[[Path], list[str]]


def _problem_of(ranges: Iterable[tuple[str, int, int, int]]) -> tuple[int, str]:
    """Return where ranges of offsets end, and the first that overlaps another or leaves a gap.

    Args:
        ranges: of files or row groups: name, least and greatest offset, and number of rows.
    """
    reached = 0
    for name, least, greatest, count in ranges:
        if least != reached or greatest - least + 1 != count:
            return reached, f"{name}: {count} offsets {least} to {greatest} after {reached}"
        reached = greatest + 1
    return reached, ""


def _visible_files(table: Path) -> tuple[int, str]:
    return _problem_of(_row_groups(sorted(table.rglob("*.parquet"))))


def _row_groups(paths: Iterable[Path]) -> Iterator[tuple[str, int, int, int]]:
    for path in paths:
        metadata = pq.ParquetFile(path).metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            statistics = group.column(0).statistics
            yield path.name, statistics.min, statistics.max, group.num_rows


def _rows_of_files(table: Path) -> pa.Table:
    files = sorted(table.rglob("*.parquet"))
    return pa.concat_tables([pq.ParquetFile(path).read(columns=list(COLUMNS)) for path in files])


@contextmanager
def _iceberg(table: Path) -> Iterator[Any]:
    """Open the Iceberg table in a directory; None where no export came so far."""
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{table / CATALOG_FILE}", warehouse=table.as_uri())
    try:
        yield catalog.load_table(TABLE_NAME) if catalog.table_exists(TABLE_NAME) else None
    finally:
        catalog.close()


def _visible_iceberg(table: Path) -> tuple[int, str]:
    """Look at each snapshot: its files are those of the one before, and some more."""
    if not (table / CATALOG_FILE).exists():
        return 0, ""
    with _iceberg(table) as found:
        counts = [0]
        for snapshot in [] if found is None else sorted(found.snapshots(), key=lambda each: each.sequence_number):
            count = int(snapshot.summary["total-records"])
            if json.loads(snapshot.summary["seglog.progress.orders-0"])["nextOffset"] != count or count <= counts[-1]:
                return counts[-1], f"snapshot {snapshot.snapshot_id} has {count} rows and another progress"
            counts.append(count)
        reached, problem = (0, "") if found is None else _problem_of(_data_files(found))
    return reached, problem or ("" if reached == counts[-1] else f"{reached} offsets, but {counts[-1]} rows")


def _data_files(table: Any) -> Iterator[tuple[str, int, int, int]]:  # noqa: ANN401 - a table of pyiceberg
    bounds = {
        each["file_path"]: (each["readable_metrics"]["offset"], each["record_count"])
        for each in table.inspect.files().to_pylist()
    }
    for path, (metrics, count) in sorted(bounds.items()):
        yield path, metrics["lower_bound"], metrics["upper_bound"], count


def _rows_of_iceberg(table: Path) -> pa.Table:
    with _iceberg(table) as found:
        rows = found.scan(selected_fields=COLUMNS).to_arrow().sort_by("offset")
    times = rows.column("timestamp").cast(pa.timestamp("ms", "UTC"))
    kinds = {"key": pa.binary(), "value": pa.binary()}
    rows = rows.set_column(rows.schema.get_field_index("timestamp"), "timestamp", times)
    for name, kind in kinds.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows.column(name).cast(kind))
    return rows


def _left_of_iceberg(table: Path) -> list[str]:
    with _iceberg(table) as found:
        counted = {path.rpartition("/")[2] for path in found.inspect.all_files().column("file_path").to_pylist()}
    return sorted({path.name for path in (table / "data").iterdir()} - counted)


def _left_of_files(table: Path) -> list[str]:
    return [path.name for path in table.rglob("*.tmp")]


TABLES: Final = {
    "parquet": Table("parquet", _visible_files, _rows_of_files, _left_of_files),
    "iceberg": Table("iceberg", _visible_iceberg, _rows_of_iceberg, _left_of_iceberg),
}
