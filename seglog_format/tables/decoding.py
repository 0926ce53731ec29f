"""Decoding of the keys and values of rows; rows that cannot be decoded are separated, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from seglog_format.tables.formats import ICEBERG, TEXT_FORMATS
from seglog_format.tables.rows import GROUP_SIZE, REASON, chosen_rows, headers_as_map
from seglog_format.values.decoder import decoded, decoder_of
from seglog_format.values.schemas import AS_MAP
from seglog_format.values.shape import first_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.tables.settings import TableSettings
    from seglog_format.values.schemas import Schemas

PIECE_ROWS: Final = 1024
"""Rows that are decoded at once: their values may be many times larger than their bytes."""


class Decoded(NamedTuple):
    """Rows after decoding.

    Attributes:
        rows: those whose keys and values were decoded.
        undecoded: the others, unchanged, with a column for the reason.
        source: all of them, before decoding.
    """

    rows: pa.Table
    undecoded: pa.Table
    source: pa.Table


class RowDecoder:
    """Decodes the columns of a table that are not bytes."""

    def __init__(self, settings: TableSettings, schemas: Schemas | None) -> None:
        """Prepare for the settings of a table.

        Raises:
            UsageError: a schema is not valid for its type, or a library is not installed.
        """
        decoders = {name: decoder_of(form, schemas) for name, form in settings.forms.items()}
        self._decoders = {name: decoder for name, decoder in decoders.items() if decoder is not None}
        self._choice = settings.choice
        self._is_text = settings.format in TEXT_FORMATS
        self._bytes_as = settings.bytes_as
        self._has_first_names = settings.format != ICEBERG and any(form.older for form in settings.forms.values())

    def decode(self, rows: pa.Table) -> Iterator[Decoded]:
        """Decode rows; yield them in one piece, or in several if the decoded values are large."""
        if not self._decoders:
            yield self._decoded(rows)
            return
        held: list[Decoded] = []
        size = 0
        for first in range(0, rows.num_rows, PIECE_ROWS):
            held.append(self._decoded(rows.slice(first, PIECE_ROWS)))
            size += held[-1].rows.nbytes
            if size >= GROUP_SIZE:
                yield _joined(held)
                held, size = [], 0
        if held:
            yield _joined(held)

    def _decoded(self, source: pa.Table) -> Decoded:
        reasons: dict[int, str] = {}
        found = rows = chosen_rows(source, self._choice)
        for name, decoder in self._decoders.items():
            column, failures = decoded(decoder, rows.column(name), rows.column("key"))
            reasons = {failure.row: f"{name}: {failure.reason}" for failure in failures} | reasons
            if self._has_first_names:
                kind = first_names(decoder.type)
                column = pa.chunked_array([each.view(kind) for each in column.chunks], kind)
            found = found.set_column(found.schema.get_field_index(name), pa.field(name, column.type), column)
        if self._choice.headers == AS_MAP:
            column, failed = headers_as_map(rows.column("headers"))
            reasons = failed | reasons
            field = pa.field("headers", column.type, nullable=False)
            found = found.set_column(found.schema.get_field_index("headers"), field, column)
        if self._is_text:
            from seglog_format.tables.text import unwritable  # noqa: PLC0415 - of the formats, one is used

            reasons = unwritable(found, self._bytes_as) | reasons
        return Decoded(*_parted(found, rows, reasons), source) if reasons else Decoded(found, rows.slice(0, 0), source)


def _joined(pieces: list[Decoded]) -> Decoded:
    """Return pieces as one."""
    undecoded = [piece.undecoded for piece in pieces if piece.undecoded.num_rows]
    return Decoded(
        pa.concat_tables([piece.rows for piece in pieces]),
        pa.concat_tables(undecoded) if undecoded else pieces[0].undecoded,
        pa.concat_tables([piece.source for piece in pieces]),
    )


def _parted(found: pa.Table, rows: pa.Table, reasons: dict[int, str]) -> tuple[pa.Table, pa.Table]:
    is_decoded = pa.array([row not in reasons for row in range(rows.num_rows)])
    undecoded = rows.take(pa.array(sorted(reasons)))
    texts = pa.array([reasons[row] for row in sorted(reasons)], pa.string())
    return found.filter(is_decoded), undecoded.append_column(pa.field(REASON, pa.string(), nullable=False), texts)
