"""What the data source plans: the tasks of a query and their pieces, with a range that filters leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proofs.spark.readers import planned, reader_of, table_of
from seglog_format.spark.filters import EVERYTHING, Narrowed
from seglog_format.spark.source import SeglogReader

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from seglog_format.spark.pieces import Piece, Task


def _reader(
    path: Path | str, columns: tuple[str, ...] | None, narrowed: Narrowed, options: dict[str, str]
) -> SeglogReader:
    reader = reader_of(path, columns, **options)
    assert isinstance(reader, SeglogReader)
    reader.narrowed = narrowed
    return reader


def tasks(path: Path | str, narrowed: Narrowed = EVERYTHING, **options: str) -> list[Task]:
    """Return the tasks of a query."""
    return [part.value for part in planned(_reader(path, None, narrowed, options))]


def pieces(path: Path | str, narrowed: Narrowed = EVERYTHING, **options: str) -> list[Piece]:
    """Return all pieces of them."""
    return [piece for task in tasks(path, narrowed, **options) for piece in task.pieces]


def read(
    path: Path | str, columns: tuple[str, ...] | None = None, narrowed: Narrowed = EVERYTHING, **options: str
) -> pa.Table:
    """Plan and read a query."""
    return table_of(_reader(path, columns, narrowed, options))
