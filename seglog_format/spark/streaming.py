"""The reader of streams: ``spark.readStream.format("seglog")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.spark.plain_stream import PlainStreamReader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader
    from pyspark.sql.types import StructType

    from seglog_format.spark.options import ReadOptions


def stream_reader(options: ReadOptions, schema: StructType) -> DataSourceStreamReader:
    """Return a reader of streams; from Spark 4.2 on, the reader limits its steps and supports `availableNow`."""
    try:
        from seglog_format.spark.admission import AdmittingStreamReader  # noqa: PLC0415 - not there before 4.2
    except ImportError:
        return PlainStreamReader(options, schema)
    return AdmittingStreamReader(options, schema)
