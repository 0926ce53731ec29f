"""The stream reader for Spark 4.2 and later: limits for a step, and an end fixed when the query starts."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from seglog_format.spark.following import Follower, PlainStreamReader
from seglog_format.spark.offsets import offsets_as_json
from seglog_format.spark.source_parts import one_line_errors


class AdmittingStreamReader(PlainStreamReader, SupportsTriggerAvailableNow):
    """Reads in steps of the size that the options set."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's names, from here on
        """Return the limit of a step."""
        if self.options.rows_per_trigger is not None:
            return ReadMaxRows(self.options.rows_per_trigger)
        if self.options.size_per_trigger is not None:
            return ReadMaxBytes(self.options.size_per_trigger)
        return ReadAllAvailable()

    @one_line_errors()
    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offsets at which the logs end, for Spark's reports of the query's lag."""
        return offsets_as_json(Follower(self.options).latest())

    @one_line_errors()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end of this run: later records are left to the next run."""
        self._target = self._follower.latest(is_final=True)
