"""Converts the columns of a scan to Spark's names and types, and adds columns that are constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from seglog_format.spark.damage import Damage
    from seglog_format.spark.pieces import Piece

SCANNED: Final = {
    "key": "key",
    "value": "value",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestampType": "timestamp_type",
    "headers": "headers",
    "leaderEpoch": "leader_epoch",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "sequence": "sequence",
    "isTransactional": "is_transactional",
    "batchOffset": "batch_offset",
    "position": "position",
    "codec": "codec",
}
"""Columns of a scan by Spark's names."""

NO_TIMESTAMP_TYPE: Final = -1
"""The timestamp type that the connector gives for a record without timestamp."""
MAX_MILLISECONDS: Final = (2**63 - 1) // 1000
"""Largest timestamp: Spark counts microseconds."""


class SparkColumns:
    """Converts batches of a scan to batches for Spark.

    Attributes:
        schema: of the batches for Spark.
        scanned: columns to scan; never empty, since a batch without columns has no rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.scanned = tuple(SCANNED[name] for name in schema.names if name in SCANNED) or ("offset",)

    def of(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        """Convert one batch."""
        arrays = [self._array(field, batch, piece) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _array(self, field: pa.Field, batch: pa.RecordBatch, piece: Piece) -> pa.Array:
        name, kind = field.name, field.type
        if name not in SCANNED:
            return pa.repeat(pa.scalar(self._same(piece).get(name), kind), len(batch))
        array = batch.column(SCANNED[name])
        if name == "headers":
            return spark_headers(array, kind)
        if name == "timestamp":
            return spark_timestamps(array, kind)
        if name == "timestampType":
            return array.fill_null(NO_TIMESTAMP_TYPE)
        return array if array.type == kind else array.cast(kind)

    def _same(self, piece: Piece) -> dict[str, object]:
        """Return the columns that are constant over a piece."""
        return {
            "topic": piece.topic,
            "partition": piece.partition,
            "file": piece.log,
            "topicId": piece.topic_id,
        }

    def of_damage(self, damage: Damage, piece: Piece) -> pa.RecordBatch:
        """Return a row that describes damage and has no record."""
        damage_row = {
            "file": damage.file,
            "position": damage.position,
            "size": damage.size,
            "requirement": damage.requirement,
            "message": damage.message,
        }
        row = dict.fromkeys(self.schema.names) | self._same(piece) | {"_corrupt": damage_row}
        return pa.RecordBatch.from_pylist([row], self.schema)


def spark_timestamps(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert milliseconds to Spark's microseconds; null if out of range."""
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        numbers = array.cast(pa.int64())
        near = pc.less_equal(pc.abs_checked(pc.max_element_wise(numbers, -(2**63) + 1)), MAX_MILLISECONDS)
        return pc.if_else(near, numbers, pa.scalar(None, pa.int64())).cast(array.type).cast(kind)


def spark_headers(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert headers to the connector's form: null for a record without headers, keys as text."""
    pairs = array.values
    keys = _texts(pairs.field("key"))
    values = pairs.field("value")
    structs = pa.StructArray.from_arrays([keys, values], fields=list(kind.value_type))
    counts = pc.list_value_length(array)
    return pa.ListArray.from_arrays(array.offsets, structs, type=kind, mask=pc.equal(counts, 0))


def _texts(keys: pa.Array) -> pa.Array:
    """Decode bytes as UTF-8; replace invalid bytes as Kafka's clients do."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())
