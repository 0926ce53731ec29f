"""Avro values as columns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.values.avro_bytes import read_whole
from seglog_format.values.avro_logical import TEXT, Column, logical_column
from seglog_format.values.avro_reading import Plans
from seglog_format.values.avro_schema import RECORDS, AvroType, avro_type
from seglog_format.values.shape import CELL_SIZE, MAX_DEPTH, Shape, Visits, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seglog_format.values.schemas import SchemaText

PRIMITIVES: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}


class AvroDecoder:
    """Decodes Avro values by a reader's schema.

    Attributes:
        shape: of the column.
    """

    def __init__(self, reader: SchemaText) -> None:
        """Prepare for a reader's schema.

        Raises:
            UndecodedError: the text is not an Avro schema.
            Exception: other errors of hostile text.
        """
        self._reader = avro_type(reader)
        self._column = _Columns().column(self._reader, (), 0)
        self._plans = Plans()
        self.shape = Shape(self._column.type, width=self._column.width)

    def prepared(self, writer: SchemaText, *, is_plain: bool) -> Callable[[bytes], Any]:  # noqa: ARG002 - of all kinds
        """Return the function that decodes values of a writer's schema to objects in the form that Arrow accepts.

        Raises:
            UndecodedError: the schemas do not match, or the text is not an Avro schema.
            Exception: as above.
        """
        return partial(read_whole, self._plans.whole(avro_type(writer), self._reader, self._column))


class _RecursiveError(Exception):
    pass


class _Columns:
    """Makes columns of types. Types that contain themselves, or are nested too deeply, are JSON as text."""

    def __init__(self) -> None:
        self._visits = Visits()

    def column(self, kind: AvroType, above: tuple[str, ...], depth: int) -> Column:
        """Return the column of a type.

        Args:
            kind: the type.
            above: names of the records that it is in.
            depth: number of types that it is in.

        Raises:
            UndecodedError: the column would have too many fields.
        """
        self._visits.add()
        if depth > MAX_DEPTH:
            return TEXT
        if kind.kind == "union":
            return self._union(kind, above, depth)
        if kind.kind in RECORDS:
            return self._record(kind, above, depth)
        if kind.items is not None:
            inside = self.column(kind.items, above, depth + 1)
            make = partial(pa.map_, pa.string()) if kind.kind == "map" else pa.list_
            return Column(make(inside.type), (inside,))
        return _leaf(kind)

    def _record(self, kind: AvroType, above: tuple[str, ...], depth: int) -> Column:
        if kind.name in above:
            raise _RecursiveError
        try:
            inside = [self.column(each.type, (*above, kind.name), depth + 1) for each in kind.fields]
        except _RecursiveError:
            return TEXT
        return _struct((each.name for each in kind.fields), inside) if inside else TEXT

    def _union(self, kind: AvroType, above: tuple[str, ...], depth: int) -> Column:
        """Return the column of a union: that of its only branch besides null, or a struct with a member for each."""
        inside = [self.column(each, above, depth + 1) for each in kind.branches if each.kind != "null"]
        if len(inside) == 1:
            return inside[0]
        return _struct((f"member{number}" for number in range(len(inside))), inside) if inside else Column(pa.null())


def _leaf(kind: AvroType) -> Column:
    logical = logical_column(kind)
    if logical is not None:
        return Column(logical)
    if kind.kind == "fixed":
        width = width_of([Shape(pa.binary(), width=1 + kind.size // CELL_SIZE)])
        return Column(pa.binary(kind.size or -1), width=width)
    return Column(PRIMITIVES[kind.kind])


def _struct(names: Iterable[str], inside: list[Column]) -> Column:
    width = width_of([Shape(each.type, width=each.width) for each in inside])
    kind = pa.struct([pa.field(name, each.type) for name, each in zip(names, inside, strict=True)])
    return Column(kind, tuple(inside), width)
