"""The writer: ``frame.write.format("seglog").mode("append").save(path)``."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from seglog_format.errors import UsageError
from seglog_format.spark.source_parts import WriteOptions, check_written_schema, one_line_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from seglog_format.spark.staging import Staged


@dataclass
class StagedMessage(WriterCommitMessage):
    """The files that a task has staged."""

    staged: tuple[Staged, ...]


class SeglogWriter(DataSourceArrowWriter):
    """Writes rows as segments. Each attempt of a task stages files of its own; the driver commits one attempt's.

    Attributes:
        options: of the write.
        job: its name.
    """

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            msg = 'seglog: logs are appended to, never replaced: .mode("append")'
            raise UsageError(msg)
        check_written_schema(schema, options)
        self.options = options
        self.job = uuid.uuid4().hex
        self._keeps_offsets = "offset" in schema.fieldNames()

    @one_line_errors()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage the rows of a task."""
        from pyspark import TaskContext  # noqa: PLC0415 - on executors

        from seglog_format.spark.staging import Stager, staging_path  # noqa: PLC0415 - the same

        context = TaskContext.get()
        number, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
        directory = staging_path(self.options.path, self.job) / f"task_{number}_{attempt}"
        stager = Stager(directory, self.options, number)
        for batch in iterator:
            stager.add(batch)
        return StagedMessage(stager.finish())

    @one_line_errors()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Turn the staged files into segments."""
        from seglog_format.spark.staging import commit  # noqa: PLC0415

        staged = [each for message in messages if isinstance(message, StagedMessage) for each in message.staged]
        root, interval = self.options.path, self.options.interval_bytes
        commit(root, self.job, staged, keeps_offsets=self._keeps_offsets, interval_bytes=interval)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's signature
        """Remove the staged files."""
        from seglog_format.spark.staging import abort  # noqa: PLC0415

        abort(self.options.path, self.job)


def prepared(frame: DataFrame) -> DataFrame:
    """Return rows in the best order for writing: each partition in one task, sorted by offsets if there are any.

    A source cannot request an order of its rows from Spark.

    Args:
        frame: a data frame with the columns of a write.
    """
    keys = [name for name in ("topic", "partition") if name in frame.columns]
    grouped = frame.repartition(*keys) if keys else frame.coalesce(1)
    return grouped.sortWithinPartitions(*keys, "offset") if "offset" in frame.columns else grouped
