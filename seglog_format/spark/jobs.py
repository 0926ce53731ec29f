"""Spark jobs over the directories of whole clusters: each function reads through the data source.

All take a session and paths as ``load`` does, and pass options on to the source: ``subscribe``, ``mode`` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.errors import SeglogError
from seglog_format.spark.columns import projection
from seglog_format.spark.writing import prepared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

CONTENT: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
"""Columns that two equal records have in common."""
RECORD_ID: Final = ["topic", "partition", "offset"]


class UnequalError(SeglogError):
    """The written records differ from the records that were read."""


@dataclass(frozen=True, slots=True)
class Content:
    """Count and checksum of records.

    Attributes:
        records: their count.
        checksum: the sum of a hash of each, which does not depend on their order.
    """

    records: int
    checksum: int


def read(spark: SparkSession, paths: Sequence[str], table: str = "records", *columns: str, **options: str) -> DataFrame:
    """Load a table of the data source.

    Args:
        spark: a session.
        paths: as for ``load``.
        table: ``records``, ``batches``, ``segments`` or ``findings``.
        columns: of the table; by default its default columns.
        options: of the source.
    """
    reader = spark.read.format("seglog").options(table=table, **options)
    if columns:
        reader = reader.schema(projection(*columns, table=table))
    return reader.load(list(paths))


def verify(spark: SparkSession, paths: Sequence[str], **options: str) -> DataFrame:
    """Verify every replica of every partition directory; return a row for each finding."""
    return read(spark, paths, "findings", **{"replicas": "all", "recreatedTopics": "keep", **options})


def stats(spark: SparkSession, paths: Sequence[str], **options: str) -> DataFrame:
    """Return a row for each partition: sizes, counts, codecs, batch sizes, range of times. Decodes no record."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - where it is used

    batches = read(spark, paths, "batches", **options).where("not isControl")
    return (
        batches.groupBy("topic", "partition")
        .agg(
            sql.count("*").alias("batches"),
            sql.sum(sql.greatest("recordsCount", sql.lit(1))).alias("records"),
            sql.sum("size").alias("bytes"),
            sql.avg("size").cast("bigint").alias("averageBatch"),
            sql.array_sort(sql.collect_set("codec")).alias("codecs"),
            sql.timestamp_millis(sql.min(_time("baseTimestamp"))).alias("from"),
            sql.timestamp_millis(sql.max(_time("maxTimestamp"))).alias("to"),
            sql.sum(sql.expr("int(not crcIsValid)")).alias("damaged"),
        )
        .orderBy("topic", "partition")
    )


def _time(column: str) -> Column:
    """Return milliseconds; null for none."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    return sql.when(sql.col(column) >= 0, sql.col(column))


def content(frame: DataFrame) -> Content:
    """Return count and checksum of records; equal for equal records, whatever their order and location."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    columns = [sql.col(name) for name in CONTENT if name in frame.columns]
    each = sql.xxhash64(*columns).cast("decimal(20,0)")
    row = frame.select(sql.count("*").alias("n"), sql.sum(each).cast("string").alias("sum")).collect()[0]
    return Content(int(row["n"]), int(row["sum"] or 0))


def to_parquet(spark: SparkSession, paths: Sequence[str], target: str, **options: str) -> Content:
    """Write all records as Parquet, partitioned by topic and date, and prove that nothing is missing or changed.

    Args:
        spark: a session.
        paths: as for ``load``.
        target: a directory that does not exist yet.
        options: of the source.

    Returns:
        Count and checksum of what was read, equal to those of what was written.

    Raises:
        UnequalError: what was written differs.
    """
    records = read(spark, paths, "records", *CONTENT, "timestampType", **options)
    dated = records.selectExpr("*", "date(timestamp) as date")
    dated.write.partitionBy("topic", "date").parquet(target)
    written = spark.read.schema(dated.schema).parquet(target)
    return _same(content(records), content(written), target)


def _same(read_: Content, written: Content, target: str) -> Content:
    if read_ != written:
        msg = f"seglog: {target}: {written} was written, but {read_} was read"
        raise UnequalError(msg)
    return read_


def diff(spark: SparkSession, left: Sequence[str], right: Sequence[str], **options: str) -> DataFrame:
    """Return the records that are on one side only, or differ, by topic, partition and offset.

    Returns:
        Columns ``topic``, ``partition``, ``offset`` and ``difference``: ``left``, ``right`` or ``content``.
    """
    joined = _hashed(spark, left, "left", options).join(_hashed(spark, right, "right", options), RECORD_ID, "full")
    difference = "case when left is null then 'right' when right is null then 'left' else 'content' end as difference"
    return joined.where("not left <=> right").selectExpr(*RECORD_ID, difference).orderBy(*RECORD_ID)


def _hashed(spark: SparkSession, paths: Sequence[str], name: str, options: Mapping[str, str]) -> DataFrame:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    rest = [column for column in CONTENT if column not in RECORD_ID]
    frame = read(spark, paths, "records", *CONTENT, **options)
    return frame.select(*RECORD_ID, sql.xxhash64(*rest).alias(name))


def restore(spark: SparkSession, paths: Sequence[str], target: str, **options: str) -> Content:
    """Write records into a new log directory with their own offsets, up to the end that options set.

    ``endingTimestamp`` and ``endingOffsets`` set the end of each partition, and ``isolationLevel`` set to
    ``read_committed`` leaves aborted records out. Producer ids and transactions are not kept.

    Args:
        spark: a session.
        paths: as for ``load``.
        target: a log directory that does not exist yet, or has none of these offsets.
        options: of the source.

    Returns:
        Count and checksum of what was read, equal to those of what was written.

    Raises:
        UnequalError: what was written differs.
    """
    records = read(spark, paths, "records", *CONTENT, **options)
    prepared(records).write.format("seglog").mode("append").save(target)
    return _same(content(records), content(read(spark, [target], "records", *CONTENT)), target)
