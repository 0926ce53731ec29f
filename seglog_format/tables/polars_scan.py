"""Logs as lazy frames of Polars, which reads only the columns and offsets that a query needs."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.errors import UndecodedRecordError, UsageError
from seglog_format.log.reading import READ_UNCOMMITTED
from seglog_format.log.scanning import DEFAULT_COLUMNS
from seglog_format.model import INT64_MAX
from seglog_format.tables.settings import sources_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import polars as pl
    import pyarrow as pa

    from seglog_format.log.directory import PathOrPaths
    from seglog_format.log.partition import Partition
    from seglog_format.log.reading import Isolation
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.tables.settings import Source
    from seglog_format.values.decoder import Decoder

TOPIC: Final = ("topic", "partition")
BATCH_ROWS: Final = 2**16


class Offsets(NamedTuple):
    """A range of offsets, without the second one."""

    start: int = 0
    end: int = INT64_MAX

    def within(self, other: Offsets) -> Offsets:
        """Return the offsets that are in both ranges."""
        return Offsets(max(self.start, other.start), min(self.end, other.end))


class _Scan(NamedTuple):
    """The parameters of reading a partition."""

    columns: tuple[str, ...]
    isolation: Isolation
    remote: RemoteStore | None
    decoders: dict[str, Any]

    def batches(self, partition: Partition, columns: Sequence[str], offsets: Offsets) -> Iterator[pa.RecordBatch]:
        """Read a range of offsets, as far as the partition has it."""
        start = max(offsets.start, partition.log_start_offset)
        if start >= min(offsets.end, partition.log_end_offset):
            return
        asked = [name for name in columns if name not in TOPIC]
        yield from partition.scan(
            asked or ["offset"],
            start if offsets.start else None,
            offsets.end,
            isolation=self.isolation,
            batch_rows=BATCH_ROWS,
            layout="large_binary",
            **self.decoders,
        )


def scan_polars(  # noqa: PLR0913 - the parameters of a scan
    path_or_paths: PathOrPaths,
    columns: Sequence[str] = (*TOPIC, *DEFAULT_COLUMNS),
    *,
    topics: Collection[str] | None = None,
    isolation: Isolation = READ_UNCOMMITTED,
    key: Decoder | None = None,
    value: Decoder | None = None,
    on_undecoded: Callable[[UndecodedRecordError], None] | None = None,
    remote: RemoteStore | None = None,
) -> pl.LazyFrame:
    """Return a lazy frame of Polars over logs, which reads only the data that a query needs.

    Needs the extra ``fast`` and Polars. Columns that a query does not use are not read, and conditions on ``offset``
    limit the range that is read.

    Args:
        path_or_paths: of log directories or partition directories.
        columns: of those of `Partition.scan`, and ``topic`` and ``partition``.
        topics: to read; None for all.
        isolation: as of `Partition.records`.
        key: decodes keys; see `value_decoder`.
        value: decodes values: the column is a struct with the fields of their schema.
        on_undecoded: as of `Partition.scan`.
        remote: the store with tiered segments of the partitions, from `open_tier`.

    Raises:
        UsageError: a path is not a log, a column is unknown, or Polars is not installed.

    Examples:
        >>> import polars as pl
        >>> from seglog_format import scan_polars
        >>> scan_polars("demo/kafka-4.3.0/segs-0").filter(pl.col("offset") >= 448).select("offset").collect().to_dicts()
        [{'offset': 448}, {'offset': 449}]
    """
    try:
        from polars.io.plugins import register_io_source  # noqa: PLC0415 - not needed for anything else
    except ImportError as error:
        msg = "this needs Polars: pip install polars"
        raise UsageError(msg) from error
    paths = [path_or_paths] if isinstance(path_or_paths, (str, os.PathLike)) else list(path_or_paths)
    sources = sources_at(paths, topics)
    decoders = {"key": key, "value": value, "on_undecoded": on_undecoded}
    scan = _Scan(tuple(columns), isolation, remote, decoders)

    def read(
        wanted: list[str] | None, predicate: pl.Expr | None, row_count: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        return _frames(sources, scan, wanted, predicate, row_count)

    return register_io_source(read, schema=_empty(sources[0], scan).schema, is_pure=True)


def _empty(source: Source, scan: _Scan) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - as above

    asked = [name for name in scan.columns if name not in TOPIC]
    with source.open(scan.remote) as partition:
        reader = partition.scan(asked or ["offset"], part=None, to_offset=0, layout="large_binary", **scan.decoders)
        frame = pl.from_arrow(reader.schema.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return _with_topic(frame, source).select(scan.columns)


def _with_topic(frame: pl.DataFrame, source: Source) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415 - as above

    topic, partition = source.key
    return frame.with_columns(topic=pl.lit(topic, pl.String), partition=pl.lit(partition, pl.Int32))


def _frames(
    sources: Sequence[Source],
    scan: _Scan,
    wanted: list[str] | None,
    predicate: pl.Expr | None,
    row_count: int | None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows that a query needs, frame by frame."""
    import polars as pl  # noqa: PLC0415 - as above

    chosen = list(scan.columns) if wanted is None else wanted
    needed = chosen if predicate is None else list(dict.fromkeys([*chosen, *predicate.meta.root_names()]))
    offsets = Offsets() if predicate is None else offsets_of(predicate)
    left = row_count
    for source in sources:
        with source.open(scan.remote) as partition:
            for batch in scan.batches(partition, needed, offsets):
                frame = pl.from_arrow(batch)
                assert isinstance(frame, pl.DataFrame)
                found = _with_topic(frame, source)
                if predicate is not None:
                    found = found.filter(predicate)
                found = found.select(chosen).head(found.height if left is None else left)
                left = None if left is None else left - found.height
                yield found
                if left == 0:
                    return


def offsets_of(predicate: pl.Expr) -> Offsets:
    """Return a range of offsets outside of which a condition is never true; all offsets if that is unknown."""
    import polars as pl  # noqa: PLC0415 - as above

    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except (pl.exceptions.PolarsError, ValueError):  # another form of expression: all offsets are correct
        return Offsets()
    return _range(tree)


def _range(tree: Any) -> Offsets:  # noqa: ANN401 - parsed JSON
    if not isinstance(tree, dict):
        return Offsets()
    binary = tree.get("BinaryExpr")
    if isinstance(binary, dict):
        return _range_of_operator(binary.get("op"), binary.get("left"), binary.get("right"))
    function = tree.get("Function")
    return _range_of_function(function) if isinstance(function, dict) else Offsets()


def _range_of_operator(operator: Any, left: Any, right: Any) -> Offsets:  # noqa: ANN401 - as above
    if operator in {"And", "LogicalAnd"}:
        return _range(left).within(_range(right))
    if left == OFFSET:
        return _compared(operator, _number(right))
    return _compared(MIRRORED.get(operator, ""), _number(left)) if right == OFFSET else Offsets()


OFFSET: Final = {"Column": "offset"}
MIRRORED: Final = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}
"""For each comparison operator, the one with the same meaning when the sides are swapped."""


def _compared(operator: str, number: int | None) -> Offsets:
    if number is None:
        return Offsets()
    return {
        "Gt": Offsets(start=number + 1),
        "GtEq": Offsets(start=number),
        "Lt": Offsets(end=number),
        "LtEq": Offsets(end=number + 1),
        "Eq": Offsets(number, number + 1),
    }.get(operator, Offsets())


def _range_of_function(function: dict[str, Any]) -> Offsets:
    between = function.get("function", {}).get("Boolean", {})
    parts = function.get("input", [])
    if not isinstance(between, dict) or "IsBetween" not in between or len(parts) != 3 or parts[0] != OFFSET:  # noqa: PLR2004
        return Offsets()
    return _compared("GtEq", _number(parts[1])).within(_compared("LtEq", _number(parts[2])))


def _number(tree: Any) -> int | None:  # noqa: ANN401 - as above
    """Return the number in a literal; None for any other expression."""
    while isinstance(tree, dict) and len(tree) == 1:
        tree = next(iter(tree.values()))
    return tree if type(tree) is int else None
