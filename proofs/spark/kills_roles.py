"""The two processes of `spark_kills.py`: one writes and deletes, one runs the query until it is killed."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seglog_format import LogConfig, LogWriter, new_record

if TYPE_CHECKING:
    from pathlib import Path

TOPIC: Final = "orders"
PARTITIONS: Final = 2
KEPT_SECONDS: Final = 5.0
"""Age of records after which their segments are deleted, once the query has read them."""
BATCH: Final = 20
PAUSE_SECONDS: Final = 0.2
STEP: Final = 4000
"""Largest number of offsets in a step."""
FINISH_SECONDS: Final = 300
PROGRESS_SECONDS: Final = 300
"""Time limit in which a query must start and commit a step, also on a busy machine."""
CONFIG: Final = LogConfig(
    segment_bytes=2**14, segment_index_bytes=2**12, retention_ms=int(KEPT_SECONDS * 1000), file_delete_delay_ms=1000
)
DATA_LOSS: Final = 3
"""Exit status of a query that reports data loss."""


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories of a run.

    Attributes:
        root: their parent directory.
    """

    root: Path

    @property
    def logs(self) -> Path:
        """Return the log directory."""
        return self.root / "logs"

    @property
    def checkpoint(self) -> Path:
        """Return the checkpoint directory of the query."""
        return self.root / "checkpoint"

    @property
    def stop(self) -> Path:
        """Return the path of a file whose existence stops the writer."""
        return self.root / "stop"

    @property
    def sink(self) -> Path:
        """Return the output directory of the query."""
        return self.root / "sink"

    def committed(self) -> dict[int, int]:
        """Return the next offset of each partition after the last step that the query has committed."""
        steps = [int(path.name) for path in self.checkpoint.glob("commits/*") if path.name.isdigit()]
        if not steps:
            return {}
        lines = (self.checkpoint / "offsets" / str(max(steps))).read_text(encoding="utf-8").splitlines()
        return {int(number): offset for number, offset in json.loads(lines[2])[TOPIC].items()}

    def steps(self) -> int:
        """Return how many steps the query has committed."""
        return len([path for path in self.checkpoint.glob("commits/*") if path.name.isdigit()])


# -- the writer -----------------------------------------------------------------------------------------------------


def write(directories: Directories, seed: int) -> dict[str, Any]:
    """Append to each partition, roll and delete, until the stop file exists; return what was done."""
    dice, started = random.Random(seed), time.monotonic()
    seen: dict[int, list[tuple[float, int]]] = {number: [] for number in range(PARTITIONS)}
    deleted = 0
    with LogWriter(directories.logs, CONFIG) as logs:
        writers = [logs.open(TOPIC, number) for number in range(PARTITIONS)]
        while not directories.stop.exists():
            for number, writer in enumerate(writers):
                count = dice.randrange(1, BATCH)
                writer.append(records(number, writer.log_end_offset, count))
                seen[number].append((time.monotonic(), writer.log_end_offset))
            committed = directories.committed()
            for number, writer in enumerate(writers):
                if committed.get(number, -1) >= _old(seen[number]):
                    deleted += len(writer.apply_retention().removed)
                writer.remove_deleted()
            time.sleep(PAUSE_SECONDS)
        ends = {number: writer.log_end_offset for number, writer in enumerate(writers)}
        starts = {number: writer.log_start_offset for number, writer in enumerate(writers)}
    seconds = round(time.monotonic() - started)
    return {"ends": ends, "starts": starts, "segments_deleted": deleted, "seconds": seconds}


def _old(seen: list[tuple[float, int]]) -> int:
    """Return the log end offset at the time whose segments retention now deletes; all lower offsets are older."""
    before = time.monotonic() - KEPT_SECONDS
    while len(seen) > 1 and seen[1][0] < before:
        seen.pop(0)
    return seen[min(1, len(seen) - 1)][1]


def records(number: int, first: int, count: int) -> list[Any]:
    """Return records whose values name their offsets."""
    now_ms = int(time.time() * 1000)
    return [
        new_record(value=value(number, offset).encode(), timestamp_ms=now_ms) for offset in range(first, first + count)
    ]


def value(number: int, offset: int) -> str:
    """Return the value of the record at an offset."""
    return f"{number}-{offset}-" + "." * (offset % 150)


# -- the query ------------------------------------------------------------------------------------------------------


def query(directories: Directories, *, to_the_end: bool, goes_on: bool) -> int:
    """Run the query until it is killed or has read everything; return its exit status."""
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415 - only this process needs Spark

    from proofs.spark.session import quiet_session  # noqa: PLC0415

    settings = {"spark.sql.shuffle.partitions": "2"}
    spark = quiet_session("spark-kills", directory=directories.root / "spark", settings=settings)
    reader = spark.readStream.format("seglog").option("startingOffsets", "earliest").option("subscribe", TOPIC)
    reader = reader.option("maxOffsetsPerTrigger", str(STEP)).option("failOnDataLoss", str(not goes_on).lower())
    rows = reader.load(str(directories.logs)).selectExpr("partition", "offset", "cast(value as string) as value")
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(directories.checkpoint))
    writer = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="200 milliseconds")
    try:
        writer.start(str(directories.sink)).awaitTermination()
    except StreamingQueryException as error:
        print(str(error)[:4000], flush=True)
        return DATA_LOSS if "DataLossError" in str(error) or "was cut back" in str(error) else 1
    return 0
