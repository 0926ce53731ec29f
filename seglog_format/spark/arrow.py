"""Converts the columns of a scan to Spark's names and types, decodes keys and values, and adds constant columns."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from seglog_format.errors import UsageError
from seglog_format.spark.columns import COLUMNS, CORRUPT, HEADERS
from seglog_format.spark.options import LEFT_OUT
from seglog_format.tables.rows import HEADERS_MAP, headers_as_map
from seglog_format.tables.schema_topic import beside, forms_of, read_schemas
from seglog_format.values.decoder import decoded, decoder_of
from seglog_format.values.schemas import AS_MAP, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.spark.damage import Damage
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import Piece
    from seglog_format.values.decoder import Decoder

ARROW: Final = {
    "binary": pa.binary(),
    "string": pa.string(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    COLUMNS["records"][HEADERS]: pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    COLUMNS["records"][CORRUPT]: pa.struct(
        {
            "file": pa.string(),
            "position": pa.int64(),
            "size": pa.int64(),
            "requirement": pa.string(),
            "message": pa.string(),
        }
    ),
}
"""Arrow's types by Spark's."""


def arrow_schema(names: Iterable[str], options: ReadOptions) -> pa.Schema:
    """Return the schema of some columns of a query."""
    kinds = {name: ARROW[kind] for name, kind in COLUMNS[options.table].items()}
    kinds |= {name: decoder.type for name, decoder in decoders_of(options).items()}
    kinds |= {HEADERS: HEADERS_MAP} if options.headers_as == AS_MAP else {}
    return pa.schema([(name, kinds[name]) for name in names])


def decoders_of(options: ReadOptions) -> dict[str, Decoder]:
    """Return the decoders of a query by the names of their columns.

    Raises:
        UsageError: a schema is not valid for its type, or a library is not installed.
    """
    found = {name: decoder_of(form, options.schemas) for name, form in options.forms.items()}
    return {name: decoder for name, decoder in found.items() if decoder is not None}


def with_forms(options: ReadOptions) -> ReadOptions:
    """Return the options of a query with its schemas, which the driver reads and executors get.

    Raises:
        UsageError: there is no schema, or the topics have several; or the table has no keys and values.
        FormatError: the log of the schemas is damaged.
    """
    if not options.is_decoding:
        return options
    from seglog_format.spark.planning import wanted_replicas  # noqa: PLC0415 - executors do not plan

    if options.table not in {"records", LEFT_OUT}:
        msg = f"seglog: the table {options.table} has no keys and values to decode"
        raise UsageError(msg)
    replicas = wanted_replicas(options, options.storage)
    schemas = None
    if {options.key_as, options.value_as} & set(TYPES):
        path = options.schemas_path or beside(each.path for each in replicas if each.storage.is_local)
        schemas = None if path is None else read_schemas(path)
    own = {"schema": options.value_schema, "message": options.value_message, "is_plain": options.is_plain}
    partitions = [(each.topic, partial(each.open, options)) for each in replicas]
    kinds, one = (options.key_as, options.value_as), "seglog: a query {}: subscribe to one topic"
    forms = forms_of(kinds, partitions, schemas, options.times, one, **own)
    return replace(options, forms={name: form for name, form in forms.items() if form.kind != "bytes"}, schemas=schemas)


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

    def __init__(self, schema: pa.Schema, decoders: Mapping[str, Decoder] | None = None) -> None:
        self.schema = schema
        self._decoders = {name: each for name, each in (decoders or {}).items() if name in schema.names}
        self._has_map = HEADERS in schema.names and pa.types.is_map(schema.field(HEADERS).type)
        names = [*schema.names, *(("offset", "position") if self._decoders or self._has_map else ())]
        names += ["key"] if any(each.takes_keys for each in self._decoders.values()) else []
        self.scanned = tuple(dict.fromkeys(SCANNED[name] for name in names if name in SCANNED)) or ("offset",)

    def of(self, batch: pa.RecordBatch, piece: Piece) -> tuple[pa.RecordBatch, dict[int, str]]:
        """Convert one batch; return it with the rows whose key or value does not decode and is null, with reasons."""
        reasons: dict[int, str] = {}
        arrays = []
        for field in self.schema:
            if field.name in self._decoders:
                decoder = self._decoders[field.name]
                keys = batch.column("key") if decoder.takes_keys else None
                column, failures = decoded(decoder, batch.column(field.name), keys)
                reasons = {each.row: f"{field.name}: {each.reason}" for each in failures} | reasons
                arrays.append(column.combine_chunks().cast(field.type))  # Spark counts a time of day in nanoseconds
            elif self._has_map and field.name == HEADERS:
                maps, failed = headers_as_map(batch.column(HEADERS))
                reasons = failed | reasons
                is_empty = pc.equal(pc.list_value_length(batch.column(HEADERS)), 0)
                arrays.append(pc.if_else(is_empty, pa.scalar(None, maps.type), maps))
            else:
                arrays.append(self._array(field, batch, piece))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), reasons

    def with_reasons(
        self, made: pa.RecordBatch, batch: pa.RecordBatch, piece: Piece, reasons: Mapping[int, str]
    ) -> pa.RecordBatch:
        """Return a batch whose column `_corrupt` says why rows do not decode."""
        rows = [
            None
            if row not in reasons
            else {
                "file": piece.log,
                "position": batch.column("position")[row].as_py(),
                "size": None,
                "requirement": None,
                "message": f"offset {batch.column('offset')[row]}: {reasons[row]}",
            }
            for row in range(len(batch))
        ]
        index = self.schema.get_field_index(CORRUPT)
        return made.set_column(index, self.schema.field(index), pa.array(rows, self.schema.field(index).type))

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
        return {"topic": piece.topic, "partition": piece.partition, "file": piece.log, "topicId": piece.topic_id}

    def of_damage(self, damage: Damage, piece: Piece) -> pa.RecordBatch:
        """Return a row that describes damage and has no record."""
        row = dict.fromkeys(self.schema.names) | self._same(piece) | {CORRUPT: asdict(damage)}
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
