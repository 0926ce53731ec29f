"""Encoder of record batches of magic 2 from Arrow columns, with the same bytes as the plain encoder."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute

from seglog_format.columnar import encode_records as names
from seglog_format.columnar.checksum import checksum
from seglog_format.columnar.compiled import checksum_path
from seglog_format.columnar.layout import (
    BATCH_ATTRIBUTES,
    BATCH_CRC,
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    PREFIX_SIZE,
    SIZE,
    TRANSACTIONAL,
)
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.columnar.arrays import Bytes, Numbers
    from seglog_format.storage.byte_source import Buffer

DEFAULT_BATCH_SIZE: Final = 16_384
OUT_SIZE: Final = 2**20
MAX_TIMESTAMP: Final = 2**62
"""Maximum milliseconds, so differences of timestamps fit their fields."""
MAX_SIZE: Final = 2**30
"""Maximum size of a batch, so its sizes fit their fields."""
NO_BYTES: Final = np.zeros(1, np.uint8)
COLUMNS: Final = frozenset({"offset", "timestamp", "key", "value", "headers"})
NUMBER: Final = Struct(">i")
CHECKSUM: Final = Struct(">I")


@dataclass(frozen=True, slots=True)
class BatchFields:
    """The fields of batches that columns do not contain.

    Attributes:
        codec: number of the codec.
        leader_epoch: or -1.
        producer_id: or -1.
        producer_epoch: or -1.
        base_sequence: of the first record, or -1; later records increase it by one each.
        is_transactional: whether the batches belong to a transaction.
    """

    codec: int = 0
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    is_transactional: bool = False


class _Columns:
    """The columns of a table in the form that the kernel reads, and the objects that keep them alive."""

    def __init__(self, table: pa.Table, base_offset: int) -> None:
        self.rows = table.num_rows
        self.addresses = np.zeros(names.ADDRESSES, np.int64)
        self._kept: list[Any] = []
        self._offsets = _offsets(table, base_offset)
        self._add(names.OFFSETS, self._offsets)
        self._add(names.TIMESTAMPS, _timestamps(table))
        for number, name in ((names.KEYS, "key"), (names.VALUES, "value")):
            self._add_bytes(number, _column(table, name, pa.large_binary()))
        self._add_headers(table)

    def check_cuts(self, cuts: Numbers) -> None:
        """Refuse batches whose offsets are too far apart."""
        ends = np.cumsum(cuts)
        if len(cuts) and (self._offsets[ends - 1] - self._offsets[ends - cuts] > names.MAX_DELTA).any():
            msg = f"offsets of a batch lie more than {names.MAX_DELTA} apart"
            raise UsageError(msg)

    def _add(self, number: int, array: Any) -> None:
        kept = np.ascontiguousarray(array)
        self._kept.append(kept)
        self.addresses[number : number + 2] = kept.ctypes.data, kept.nbytes

    def _add_bytes(self, number: int, column: pa.Array) -> None:
        _, ends, data = column.buffers()
        bounds = np.frombuffer(ends, np.int64, len(column) + 1, 8 * column.offset) if len(column) else np.zeros(1)
        self._add(number, bounds.astype(np.int64, copy=False))
        self._add(number + 2, np.frombuffer(data, np.uint8) if data is not None and data.size else NO_BYTES)
        if column.null_count:
            self._add(number + 4, column.is_valid().cast(pa.uint8()).to_numpy(zero_copy_only=False))
        if bounds[-1] - bounds[0] > MAX_SIZE and int(np.diff(bounds).max()) > MAX_SIZE:
            msg = f"a key, value or header of more than {MAX_SIZE} bytes"
            raise UsageError(msg)

    def _add_headers(self, table: pa.Table) -> None:
        if "headers" not in table.column_names:
            return
        pair = pa.struct([("key", pa.large_binary()), ("value", pa.large_binary())])
        column = _column(table, "headers", pa.large_list(pair))
        pairs = column.flatten()
        counts = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        self._add(names.HEADER_ENDS, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        keys, values = pairs.flatten()
        if keys.null_count:
            msg = "the key of a header is null"
            raise UsageError(msg)
        self._add_bytes(names.HEADER_KEYS, keys)
        self._add_bytes(names.HEADER_VALUES, values)


def _column(table: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column in one piece; a missing column is all nulls."""
    if name not in table.column_names:
        return pa.nulls(table.num_rows, kind)
    column = table.column(name)
    column = column if column.type == kind else column.cast(kind)
    # a single chunk is used without a copy; combining chunks would copy it
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([pa.nulls(0, kind), *column.chunks])


def _offsets(table: pa.Table, base_offset: int) -> Numbers:
    if "offset" not in table.column_names:
        return np.arange(base_offset, base_offset + table.num_rows, dtype=np.int64)
    column = _column(table, "offset", pa.int64())
    offsets: Numbers = column.to_numpy(zero_copy_only=False)
    if column.null_count or (len(offsets) and (offsets[0] < 0 or (offsets[1:] <= offsets[:-1]).any())):
        msg = "offsets of records are 0 or more and strictly increase (SEG-REC-013)"
        raise UsageError(msg)
    return offsets


def _timestamps(table: pa.Table) -> Numbers:
    if "timestamp" in table.column_names and pa.types.is_temporal(table.schema.field("timestamp").type):
        position, times = table.column_names.index("timestamp"), table.column("timestamp")
        table = table.set_column(position, "timestamp", times.cast(pa.timestamp("ms", times.type.tz)))
    column = _column(table, "timestamp", pa.int64())
    ends = compute.min_max(column)
    oldest, newest = ends["min"].as_py(), ends["max"].as_py()
    if oldest is not None and (oldest < -1 or newest > MAX_TIMESTAMP):
        msg = f"timestamps from {oldest} to {newest}: they are 0 to {MAX_TIMESTAMP}, or null"
        raise UsageError(msg)
    timestamps: Numbers = (column.fill_null(-1) if column.null_count else column).to_numpy(zero_copy_only=False)
    return timestamps


def encode(
    table: pa.Table,
    fields: BatchFields,
    *,
    base_offset: int = 0,
    batch_size: int = DEFAULT_BATCH_SIZE,
    counts: Numbers | None = None,
    compress: Callable[[Buffer], bytes] | None = None,
) -> Iterator[Bytes | bytearray]:
    """Encode rows as batches.

    Args:
        table: of ``offset``, ``timestamp``, ``key``, ``value`` and ``headers``, any of which may be missing.
        fields: of each batch.
        base_offset: offset of the first row, if there is no column of offsets.
        batch_size: maximum bytes of a batch of several records, before compression.
        counts: number of records in each batch, instead of `batch_size`.
        compress: compresses the records of a batch; required with a codec.

    Yields:
        Bytes of one or more whole batches, which the next ones overwrite.

    Raises:
        UsageError: the options are invalid, or a batch cannot hold the rows.
    """
    _check(table, fields, batch_size, counts, compress)
    columns = _Columns(table, base_offset)
    cuts = np.zeros(0, np.int64) if counts is None else np.ascontiguousarray(counts, np.int64)
    columns.check_cuts(cuts)
    state = np.zeros(names.STATE_SIZE, np.int64)
    attributes = fields.codec | (TRANSACTIONAL if fields.is_transactional else 0)
    given = (batch_size, attributes, fields.leader_epoch, fields.producer_id, fields.producer_epoch)
    state[names.ROWS] = columns.rows
    state[names.MAX_SIZE :] = (*given, fields.base_sequence, checksum_path())
    out = np.empty(max(OUT_SIZE, 2 * min(batch_size, MAX_SIZE)), np.uint8)
    while state[names.ROW] < columns.rows:
        misses_room = names.encode_rows(columns.addresses, cuts, state, out)
        if used := int(state[names.USED]):
            yield out[:used] if compress is None else _compressed(out[:used], compress)
        elif misses_room and len(out) > MAX_SIZE:
            msg = f"a batch of more than {MAX_SIZE} bytes"
            raise UsageError(msg)
        elif misses_room:
            out = np.empty(2 * len(out), np.uint8)


def _check(
    table: pa.Table,
    fields: BatchFields,
    batch_size: int,
    counts: Numbers | None,
    compress: Callable[[Buffer], bytes] | None,
) -> None:
    unknown = sorted(set(table.column_names) - COLUMNS)
    if unknown:
        msg = f"columns are of {', '.join(sorted(COLUMNS))}, not {', '.join(unknown)}"
        raise UsageError(msg)
    if not 1 <= batch_size <= MAX_SIZE or not 0 <= fields.codec <= CODEC_MASK:
        msg = f"a batch size of 1 to {MAX_SIZE} and a codec that there is, not {batch_size} and {fields.codec}"
        raise UsageError(msg)
    if (fields.codec == 0) != (compress is None):
        msg = "what compresses is given with a codec, and only then"
        raise UsageError(msg)
    if counts is not None and (counts.sum() != table.num_rows or (len(counts) and counts.min() < 1)):
        msg = f"counts of batches are 1 or more and make {table.num_rows}"
        raise UsageError(msg)


def _compressed(batches: Bytes, compress: Callable[[Buffer], bytes]) -> bytearray:
    """Return the batches with compressed records, and with their sizes and checksums."""
    data, position, path, made = batches.data, 0, checksum_path(), bytearray()
    while position < len(data):
        start, records = len(made), position + BATCH_HEADER_SIZE
        end = position + PREFIX_SIZE + int(NUMBER.unpack_from(data, position + SIZE)[0])
        made += data[position:records]
        made += compress(data[records:end])
        size = len(made) - start
        NUMBER.pack_into(made, start + SIZE, size - PREFIX_SIZE)
        crc = checksum(True, path, np.frombuffer(made, np.uint8), start + BATCH_ATTRIBUTES, size - BATCH_ATTRIBUTES)
        CHECKSUM.pack_into(made, start + BATCH_CRC, crc)
        position = end
    return made
