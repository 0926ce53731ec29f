"""Decoding of whole columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from seglog_format.values.decoder import Decoder


class Failure(NamedTuple):
    """A value that does not decode.

    Attributes:
        row: number of the row, from 0.
        reason: text of the reason.
    """

    row: int
    reason: str


def decoded(decoder: Decoder, column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, list[Failure]]:
    """Return a column of decoded values, and the failures; a value that does not decode is null."""
    failures: list[Failure] = []
    values: list[Any] = []
    for row, data in enumerate(column.to_pylist()):
        try:
            values.append(None if data is None else decoder.decode(data))
        except UndecodedError as error:
            values.append(None)
            failures.append(Failure(row, str(error)))
    try:
        return pa.array(values, decoder.type), failures
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return _one_by_one(decoder.type, values, failures)


def _one_by_one(kind: pa.DataType, values: list[Any], failures: list[Failure]) -> tuple[pa.Array, list[Failure]]:
    """Convert values one by one, if some do not fit the type of the column, such as a large number in JSON."""
    for row, value in enumerate(values):
        try:
            pa.array([value], kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            values[row] = None
            failures.append(Failure(row, f"no value of type {kind}: {error}"))
    return pa.array(values, kind), sorted(failures)
