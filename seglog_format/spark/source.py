"""The data source ``seglog``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader

from seglog_format.spark.columns import check_schema, default_schema
from seglog_format.spark.filters import EVERYTHING, Narrowed, take_over
from seglog_format.spark.options import OF_STREAMS, ReadOptions, parse_options, parse_stream_options
from seglog_format.spark.planning import plan
from seglog_format.spark.source_parts import Part, rows_of, settle
from seglog_format.spark.streaming import stream_reader
from seglog_format.spark.write_options import parse_write_options
from seglog_format.spark.writing import SeglogWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceWriter, InputPartition
    from pyspark.sql.types import StructType

PUSHING: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module of Spark that hands filters to a reader; only there a reader may say that it takes any."""


class SeglogDataSource(DataSource):
    """Kafka log directories: ``spark.read.format("seglog").load(path)``."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "seglog"

    def schema(self) -> str:
        """The schema of a query that states none."""
        settle()
        return default_schema(parse_options(self.options, more=OF_STREAMS))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of a batch query.

        Raises:
            UsageError: options or schema that make no sense.
        """
        options = parse_options(self.options)
        check_schema(schema, options)
        return (FilteringReader if is_pushing() else SeglogReader)(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """A writer of segments.

        Raises:
            UsageError: options or columns that make no sense, or the mode ``overwrite``.
        """
        return SeglogWriter(parse_write_options(self.options), schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A reader of a stream.

        Raises:
            UsageError: options or schema that make no sense.
        """
        options = parse_stream_options(self.options)
        check_schema(schema, options)
        return stream_reader(options, schema)


def is_pushing() -> bool:
    """Whether Spark asks for a reader in order to push filters into it.

    With its default configuration Spark refuses a reader that could take filters, instead of not giving it any. So the
    reader that can is made only for the one caller that will use it.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - nothing else tells who is asking
    while frame is not None and frame.f_globals.get("__name__") != PUSHING:
        frame = frame.f_back
    return frame is not None


class SeglogReader(DataSourceReader):
    """Reads what the options say. It travels to the executors, and holds nothing but a few values.

    Attributes:
        options: of the query.
        schema: that Spark wants.
        narrowed: what filters have left.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.narrowed: Narrowed = EVERYTHING

    def partitions(self) -> list[InputPartition]:
        """What there is to read, a task each."""
        parts: list[InputPartition] = [Part(task, self.narrowed) for task in plan(self.options, self.narrowed)]
        settle()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task; Spark gives a task of its own where nothing was planned."""
        if not isinstance(partition, Part):
            return iter(())
        return rows_of(partition, self.schema, self.options)


class FilteringReader(SeglogReader):
    """The same with filters."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take filters over; returned are those that Spark has to apply."""
        self.narrowed, left = take_over(filters)
        return left
