"""From the columns of a scan to those of Spark: other names, other types, and columns that are the same in each row."""

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
"""Columns that a scan gives, by Spark's name."""

NO_TIMESTAMP_TYPE: Final = -1
"""What the connector gives for a record that has no timestamp."""
MOST_MILLISECONDS: Final = (2**63 - 1) // 1000
"""A Spark timestamp counts microseconds."""


class SparkColumns:
    """Turns batches of a scan into batches for Spark.

    Attributes:
        schema: of these.
        scanned: columns to ask the scan for; never none, since a batch without columns has no rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.scanned = tuple(SCANNED[name] for name in schema.names if name in SCANNED) or ("offset",)

    def of(self, batch: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
        """The rows of a batch, as Spark wants them."""
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
        """What is the same for all rows of a piece."""
        return {
            "topic": piece.topic,
            "partition": piece.partition,
            "file": piece.log,
            "topicId": piece.topic_id,
        }

    def of_damage(self, damage: Damage, piece: Piece) -> pa.RecordBatch:
        """A row that tells of damage and has no record."""
        told = {
            "file": damage.file,
            "position": damage.position,
            "size": damage.size,
            "requirement": damage.requirement,
            "message": damage.message,
        }
        row = dict.fromkeys(self.schema.names) | self._same(piece) | {"_corrupt": told}
        return pa.RecordBatch.from_pylist([row], self.schema)


def spark_timestamps(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Milliseconds as Spark's microseconds; null where that is too far away to be counted."""
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        numbers = array.cast(pa.int64())
        near = pc.less_equal(pc.abs_checked(pc.max_element_wise(numbers, -(2**63) + 1)), MOST_MILLISECONDS)
        return pc.if_else(near, numbers, pa.scalar(None, pa.int64())).cast(array.type).cast(kind)


def spark_headers(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Headers as the connector gives them: null for a record that has none, keys as text."""
    pairs = array.values
    keys = _texts(pairs.field("key"))
    values = pairs.field("value")
    structs = pa.StructArray.from_arrays([keys, values], fields=list(kind.value_type))
    counts = pc.list_value_length(array)
    return pa.ListArray.from_arrays(array.offsets, structs, type=kind, mask=pc.equal(counts, 0))


def _texts(keys: pa.Array) -> pa.Array:
    """Bytes as text; what is no UTF-8 is replaced, as Kafka's clients do."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())
