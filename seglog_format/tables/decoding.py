"""Decoding of the keys and values of rows; rows that cannot be decoded are separated, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from seglog_format.tables.rows import REASON
from seglog_format.values.column import decoded
from seglog_format.values.decoder import decoder_of

if TYPE_CHECKING:
    from seglog_format.tables.settings import TableSettings
    from seglog_format.values.schemas import Schemas


class Decoded(NamedTuple):
    """Rows after decoding.

    Attributes:
        rows: those whose keys and values were decoded.
        undecoded: the others, unchanged, with a column for the reason.
    """

    rows: pa.Table
    undecoded: pa.Table


class RowDecoder:
    """Decodes the columns of a table that are not bytes."""

    def __init__(self, settings: TableSettings, schemas: Schemas | None) -> None:
        """Prepare for the settings of a table.

        Raises:
            UsageError: a schema is not valid for its type, or a library is not installed.
        """
        decoders = {name: decoder_of(form, schemas) for name, form in settings.forms.items()}
        self._decoders = {name: decoder for name, decoder in decoders.items() if decoder is not None}

    def decode(self, rows: pa.Table) -> Decoded:
        """Decode rows."""
        reasons: dict[int, str] = {}
        found = rows
        for name, decoder in self._decoders.items():
            column, failures = decoded(decoder, rows.column(name))
            reasons = {failure.row: f"{name}: {failure.reason}" for failure in failures} | reasons
            found = found.set_column(found.schema.get_field_index(name), pa.field(name, decoder.type), column)
        return Decoded(*_parted(found, rows, reasons)) if reasons else Decoded(found, rows.slice(0, 0))


def _parted(found: pa.Table, rows: pa.Table, reasons: dict[int, str]) -> tuple[pa.Table, pa.Table]:
    is_decoded = pa.array([row not in reasons for row in range(rows.num_rows)])
    undecoded = rows.take(pa.array(sorted(reasons)))
    texts = pa.array([reasons[row] for row in sorted(reasons)], pa.string())
    return found.filter(is_decoded), undecoded.append_column(pa.field(REASON, pa.string(), nullable=False), texts)
