"""Decoding of whole columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from seglog_format.errors import WriteError
from seglog_format.values.shape import CELL_SIZE, WORK
from seglog_format.values.undecoded import reason_for

if TYPE_CHECKING:
    from seglog_format.values.decoder import Decoder

PIECE_CELLS: Final = 2**20
"""Cells after which decoded objects become a piece of the column, which takes less memory."""


class Failure(NamedTuple):
    """A value that does not decode.

    Attributes:
        row: number of the row, from 0.
        reason: text of the reason.
    """

    row: int
    reason: str


def decoded(decoder: Decoder, column: pa.Array | pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[Failure]]:
    """Return a column of decoded values, and the failures; a value that does not decode is null."""
    failures: list[Failure] = []
    pieces: list[pa.Array] = []
    values: list[Any] = []
    cells = 0
    for row, data in enumerate(column.to_pylist()):
        value, reason = (None, None) if data is None else _decoded(decoder, data)
        values.append(value)
        if reason is not None:
            failures.append(Failure(row, reason))
        cells += WORK.taken() + (0 if data is None else len(data) // CELL_SIZE)
        if cells > PIECE_CELLS:
            pieces.append(_piece(decoder.type, values, row + 1 - len(values), failures))
            values, cells = [], 0
    pieces.append(_piece(decoder.type, values, len(column) - len(values), failures))
    return pa.chunked_array(pieces, decoder.type), sorted(failures)


def _decoded(decoder: Decoder, data: bytes) -> tuple[Any, str | None]:
    """Decode a value, or return why it does not decode.

    The schema and the bytes may be hostile, and the libraries raise errors of any class: whatever the error is, it
    concerns this value alone.

    Raises:
        WriteError: a compiler of schemas could not write its files.
    """
    try:
        return decoder.decode(data), None
    except WriteError:
        raise
    except Exception as error:  # noqa: BLE001 - see above
        return None, reason_for(error)


def _piece(kind: pa.DataType, values: list[Any], first: int, failures: list[Failure]) -> pa.Array:
    """Return values as Arrow's; add those that do not fit the type, such as a large number in JSON, to the failures."""
    try:
        return pa.array(values, kind)
    except Exception:  # noqa: BLE001 - Arrow raises errors of several classes
        return pa.concat_arrays([_single(kind, value, first + row, failures) for row, value in enumerate(values)])


def _single(kind: pa.DataType, value: Any, row: int, failures: list[Failure]) -> pa.Array:  # noqa: ANN401 - any object
    try:
        return pa.array([value], kind)
    except Exception as error:  # noqa: BLE001 - as above
        failures.append(Failure(row, f"no value of type {kind!s:.80}: {reason_for(error)}"))
        return pa.nulls(1, kind)
