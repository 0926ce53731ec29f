"""Scans whose keys or values are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from seglog_format.errors import UndecodedRecordError
from seglog_format.values.column import decoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from seglog_format.values.decoder import Decoder

OFFSET = "offset"


def with_decoded(
    reader: pa.RecordBatchReader,
    decoders: Mapping[str, Decoder],
    on_undecoded: Callable[[UndecodedRecordError], None] | None,
    *,
    keeps_offset: bool = True,
) -> pa.RecordBatchReader:
    """Return a scan with some columns decoded.

    Args:
        reader: of the scan, with offsets.
        decoders: by column.
        on_undecoded: called for each value that cannot be decoded, which then is null; by default the first such value
            ends the scan.
        keeps_offset: whether the result has offsets.
    """
    schema = reader.schema
    for name, decoder in decoders.items():
        schema = schema.set(schema.get_field_index(name), pa.field(name, decoder.type))
    if not keeps_offset:
        schema = schema.remove(schema.get_field_index(OFFSET))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name, decoder in decoders.items():
                column, failures = decoded(decoder, columns[name])
                columns[name] = column.combine_chunks()
                for failure in failures:
                    _handle(f"offset {columns[OFFSET][failure.row]}: {name}: {failure.reason}", on_undecoded)
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _handle(text: str, on_undecoded: Callable[[UndecodedRecordError], None] | None) -> None:
    error = UndecodedRecordError(text)
    if on_undecoded is None:
        raise error
    on_undecoded(error)
