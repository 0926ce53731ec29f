"""What streams can do from Spark 4.2 on: limits for a step, and an end that is fixed when the query starts."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from seglog_format.spark.following import Follower
from seglog_format.spark.offsets import offsets_as_json
from seglog_format.spark.streaming import PlainStreamReader


class AdmittingStreamReader(PlainStreamReader, SupportsTriggerAvailableNow):
    """Reads in steps of the size that options ask for."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's names, from here on
        """How much a step reads."""
        if self.options.rows_per_trigger is not None:
            return ReadMaxRows(self.options.rows_per_trigger)
        if self.options.size_per_trigger is not None:
            return ReadMaxBytes(self.options.size_per_trigger)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where the logs end, for whoever watches how far behind the query is."""
        return offsets_as_json(Follower(self.options).latest())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Fix the end: what is written from now on is for the next run."""
        self._target = Follower(self.options).latest()
