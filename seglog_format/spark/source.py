"""The data source ``seglog``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark import __version__
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader

from seglog_format.errors import UsageError
from seglog_format.spark.columns import HEADERS, check_schema, default_columns, default_schema, projection
from seglog_format.spark.discovery import expanded_paths
from seglog_format.spark.filters import EVERYTHING, Narrowed, push_down
from seglog_format.spark.following import PlainStreamReader
from seglog_format.spark.options import (
    LEFT_OUT,
    OF_STREAMS,
    TABLES,
    USE,
    ReadOptions,
    parse_options,
    parse_stream_options,
)
from seglog_format.spark.planning import plan
from seglog_format.spark.source_parts import Part, freeze_loaded_objects, one_line_errors, parse_write_options, rows_of
from seglog_format.spark.writing import SeglogWriter
from seglog_format.values.schemas import AS_MAP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceWriter, InputPartition
    from pyspark.sql.types import StructType


# -- the reader of streams: ``spark.readStream.format("seglog")`` ------------------------------------------------------


def stream_reader(options: ReadOptions, schema: StructType) -> DataSourceStreamReader:
    """Return a reader of streams; from Spark 4.2 on, the reader limits its steps and supports `availableNow`."""
    try:
        from seglog_format.spark.admission import AdmittingStreamReader  # noqa: PLC0415 - not there before 4.2
    except ImportError:
        return PlainStreamReader(options, schema)
    return AdmittingStreamReader(options, schema)


# -- the data source ``seglog`` ----------------------------------------------------------------------------------------


PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module of Spark that calls `pushFilters`; only it accepts a reader that has this method."""


class SeglogDataSource(DataSource):
    """Kafka log directories: ``spark.read.format("seglog").load(path)``."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "seglog"

    @one_line_errors()
    def schema(self) -> str | StructType:
        """Return the schema of a query without one.

        Raises:
            UsageError: invalid options, or a path that does not exist.
        """
        freeze_loaded_objects()
        options = parse_options(self.options, more=OF_STREAMS)
        expanded_paths(options.paths)
        is_changed = options.is_decoding and options.table != LEFT_OUT
        return _decoded_schema(_with_forms(options)) if is_changed else default_schema(options)

    @one_line_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for a batch query.

        Raises:
            UsageError: invalid options or schema.
        """
        options = _checked(schema, parse_options(self.options))
        is_filtering = options.pushed_filters == USE and is_pushing()
        return (FilteringReader if is_filtering else SeglogReader)(options, schema)

    @one_line_errors()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """Return a writer of segments.

        Raises:
            UsageError: invalid options or columns, or the mode ``overwrite``.
        """
        return SeglogWriter(parse_write_options(self.options), schema, overwrite=overwrite)

    @one_line_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader for a stream.

        Raises:
            UsageError: invalid options or schema.
        """
        return stream_reader(_checked(schema, parse_stream_options(self.options)), schema)


def _checked(schema: StructType, options: ReadOptions) -> ReadOptions:
    """Check the schema of a query; return the options with the schemas of keys and values."""
    if not options.is_decoding:
        check_schema(schema, options)
        return options
    found = _with_forms(options)
    names = [*found.forms, *([HEADERS] if found.headers_as == AS_MAP else [])]
    changed = _decoded_schema(found, names if found.table == TABLES[0] else []).fields
    kinds = {field.name: field.dataType.simpleString() for field in changed}
    check_schema(schema, found, kinds)
    return found


def _with_forms(options: ReadOptions) -> ReadOptions:
    from seglog_format.spark.arrow import with_forms  # noqa: PLC0415 - brings Arrow

    return with_forms(options)


def _decoded_schema(options: ReadOptions, names: Iterable[str] | None = None) -> StructType:
    """Return the schema of some columns, by default those of a query without a schema.

    Raises:
        UsageError: Spark has no such type.
    """
    from pyspark.sql.pandas.types import from_arrow_type  # noqa: PLC0415 - brings Arrow
    from pyspark.sql.types import StructType  # noqa: PLC0415 - as above

    from seglog_format.spark.arrow import arrow_schema  # noqa: PLC0415 - as above

    projection(*default_columns(options), table=options.table)  # refuses unknown names
    made = StructType()
    for field in arrow_schema(default_columns(options) if names is None else names, options):
        try:
            made.add(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
        except PySparkException as error:
            msg = f"seglog: column {field.name}: Spark {__version__} has no type for {field.type}"
            raise UsageError(msg) from error
    return made


def is_pushing() -> bool:
    """Return whether Spark wants a reader in order to push filters into it.

    With its default configuration Spark refuses a reader that has `pushFilters`, instead of not calling it. So the
    reader that has it is made only for the one caller that uses it.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - nothing else says who is asking
    while frame is not None and frame.f_globals.get("__name__") != PUSHING:
        frame = frame.f_back
    return frame is not None


class SeglogReader(DataSourceReader):
    """Reads a batch query. It is pickled for the executors, and holds only a few values.

    Attributes:
        options: of the query.
        schema: the schema that Spark wants.
        narrowed: the range that filters leave.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.narrowed: Narrowed = EVERYTHING

    @one_line_errors()
    def partitions(self) -> list[InputPartition]:
        """Return the tasks of the query."""
        parts: list[InputPartition] = [Part(task, self.narrowed) for task in plan(self.options, self.narrowed)]
        freeze_loaded_objects()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task; for an empty plan Spark calls it with a task of its own."""
        if not isinstance(partition, Part):
            return iter(())
        return rows_of(partition, self.schema, self.options)


class FilteringReader(SeglogReader):
    """A reader that accepts filters."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Apply filters to the plan; return those that Spark has to apply."""
        self.narrowed, left = push_down(filters)
        return left
