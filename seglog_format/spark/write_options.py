"""The options of a write, and the columns that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.model import CompressionCodec
from seglog_format.names import require_topic
from seglog_format.spark.options import one_of, parse_count, parse_size, parsed, refuse
from seglog_format.state.index_build import INDEX_INTERVAL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType

NO_PARTITION: Final = (
    "fill the column partition, or give the option partitions, the number of partitions of the topic: rows are then"
    " spread as Kafka's producer spreads them"
)

OPTIONS: Final = ("path", "topic", "partitions", "codec", "segmentBytes", "batchBytes", "indexInterval")

COLUMNS: Final = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "offset": ("bigint",),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""Columns and the types that each may have; only the column `value` is required."""

SEGMENT_SIZE: Final = 2**30
BATCH_SIZE: Final = 2**16


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write.

    Attributes:
        path: of the log directory.
        topic: the topic of rows without one.
        partitions: the number of partitions of each topic, among which rows without one are spread; None: not known.
        codec: of the batches.
        segment_size: maximum bytes of a segment, unless one batch alone has more.
        batch_size: approximate bytes of a batch before compression.
        interval_bytes: bytes between index entries.
    """

    path: Path
    topic: str | None = None
    partitions: int | None = None
    codec: CompressionCodec = CompressionCodec.NONE
    segment_size: int = SEGMENT_SIZE
    batch_size: int = BATCH_SIZE
    interval_bytes: int = INDEX_INTERVAL_BYTES


def parse_write_options(raw: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write.

    Raises:
        UsageError: no path, an unknown option, or an invalid value.
    """
    given = {name.lower(): value for name, value in raw.items()}
    known = {name.lower() for name in OPTIONS}
    for name in given:
        if name not in known:
            refuse("option", name, OPTIONS)
    path, topic = given.get("path"), given.get("topic")
    if not path:
        msg = "seglog: no path: give one to save(), of a log directory"
        raise UsageError(msg)
    if topic is not None:
        require_topic(topic)
    labels = {codec.label: codec for codec in CompressionCodec}
    return WriteOptions(
        Path(path.removeprefix("file://")).absolute(),
        topic,
        parsed(given, "partitions", parse_count),
        labels[one_of("codec", given.get("codec", "none"), labels)],
        parsed(given, "segmentBytes", parse_size) or SEGMENT_SIZE,
        parsed(given, "batchBytes", parse_size) or BATCH_SIZE,
        parsed(given, "indexInterval", parse_size) or INDEX_INTERVAL_BYTES,
    )


def check_written_schema(schema: StructType, options: WriteOptions) -> None:
    """Refuse rows that cannot be written unchanged.

    Raises:
        UsageError: an unknown column, another type, no value, no topic, or no partition though the number of partitions
            is not known or rows bring offsets.
    """
    for field in schema.fields:
        if field.name not in COLUMNS:
            refuse("column", field.name, COLUMNS)
        found = field.dataType.simpleString()
        if found not in COLUMNS[field.name]:
            msg = f"seglog: column {field.name} is to be {' or '.join(COLUMNS[field.name])}, not {found}: cast it"
            raise UsageError(msg)
    names = schema.fieldNames()
    if "value" not in names or ("topic" not in names and options.topic is None):
        msg = "seglog: rows need a column value, and a column topic or the option topic"
        raise UsageError(msg)
    if "partition" not in names and "offset" in names:
        msg = "seglog: rows with a column offset need a column partition"
        raise UsageError(msg)
    if "partition" not in names and options.partitions is None:
        msg = f"seglog: rows have no partition: {NO_PARTITION}"
        raise UsageError(msg)
