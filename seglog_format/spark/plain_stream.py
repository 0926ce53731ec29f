"""The reader of streams that every release of Spark supports."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.following import Follower
from seglog_format.spark.offsets import offsets_as_json, offsets_from_json
from seglog_format.spark.source_parts import Part, one_line_errors, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from seglog_format.spark.options import ReadOptions


class PlainStreamReader(DataSourceStreamReader):
    """Reads the records that were appended to the logs since the last step.

    Attributes:
        options: of the query.
        schema: the schema that Spark wants.
    """

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self._target: dict[tuple[str, int], int] | None = None
        self._follower = Follower(options)
        self._last_step = -math.inf

    @one_line_errors()
    def initialOffset(self) -> dict[str, dict[str, int]]:  # noqa: N802 - Spark's names, from here on
        """Return the offsets at which a new stream starts."""
        return offsets_as_json(self._follower.initial())

    @one_line_errors()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: ANN401, N802
        """Return the offsets at which the next step ends. Spark before 4.2 passes neither a start nor a limit."""
        latest = self._follower.latest() if self._target is None else self._target
        if start is None:
            return offsets_as_json(latest)
        begun = offsets_from_json(start)
        if self._target is None and self._is_too_little(begun, latest):
            return start
        self._last_step = time.monotonic()
        rows, size = getattr(limit, "max_rows", None), getattr(limit, "max_bytes", None)
        return offsets_as_json(self._follower.next(begun, latest, rows=rows, size=size))

    def _is_too_little(self, start: dict[tuple[str, int], int], latest: dict[tuple[str, int], int]) -> bool:
        """Return whether fewer records wait than a step has to have, and the time is not yet over."""
        waiting = sum(max(offset - start.get(key, 0), 0) for key, offset in latest.items())
        is_late = (time.monotonic() - self._last_step) * 1000 >= self.options.max_delay_ms
        return 0 < waiting < self.options.min_rows_per_trigger and not is_late

    @one_line_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks between two offsets."""
        tasks = self._follower.tasks(offsets_from_json(start), offsets_from_json(end))
        return [Part(task, EVERYTHING) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a task."""
        return rows_of(partition, self.schema, self.options) if isinstance(partition, Part) else iter(())

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: no state is kept."""

    def stop(self) -> None:
        """Do nothing: no file is open."""
