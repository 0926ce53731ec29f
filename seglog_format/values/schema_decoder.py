"""Decoders of values with a schema. Each schema is prepared once, and may be hostile."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pyarrow as pa

from seglog_format.errors import UsageError, WriteError
from seglog_format.values.avro_reading import Plans
from seglog_format.values.avro_schema import RECORDS, TEXT, AvroType, Column, avro_type, logical_column, read_whole
from seglog_format.values.schemas import UndecodedError, id_and_rest, reason_for
from seglog_format.values.shape import ALIASES, BRANCH, CELL_SIZE, MAX_DEPTH, WORK, Shape, Visits, width_of, with_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seglog_format.values.schemas import Schemas, SchemaText


T = TypeVar("T")


class SchemaKind(Protocol):
    """Decodes values by schemas of one type.

    Attributes:
        shape: of the column.
    """

    shape: Shape

    def prepared(self, writer: SchemaText, *, is_plain: bool) -> Callable[[bytes], Any]:
        """Return the function that decodes the values of a writer's schema.

        Raises:
            Exception: of any class; schemas may be hostile.
        """


class SchemaDecoder:
    """Decodes values that a serializer of Schema Registry has written.

    Attributes:
        type: of the column.
        takes_keys: as of `Decoder`.
    """

    takes_keys = False

    def __init__(
        self,
        kind: str,
        schema: SchemaText,
        schemas: Schemas | None,
        message: str | None,
        times: str,
        *,
        is_plain: bool,
    ) -> None:
        """Prepare for a reader's schema.

        Args:
            kind: of values: ``avro``, ``json-schema`` or ``protobuf``.
            schema: of the reader.
            message: name of the message, for Protobuf.
            is_plain: whether values have no header of a serializer.
            times: one of `TIMES_AS`.
            schemas: of the registry; None to use the reader's schema for each value.

        Raises:
            UsageError: the schema is not valid for its type, or a library is not installed.
        """
        self._is_plain = is_plain
        self._reader = schema
        self._schemas = schemas
        try:
            self._kind = of_schema(lambda: _by_kind(kind, schema, message, times))
        except UndecodedError as error:
            msg = f"the reader's schema: {error}"
            raise UsageError(msg) from error
        self._by_id: dict[int, Callable[[bytes], Any]] = {}
        self.type = self._kind.shape.type

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the header or its schema is missing, or the value does not match the schema.
            Exception: of other classes, for hostile bytes.
        """
        id_, rest = (None, data) if self._is_plain else id_and_rest(data)
        decode = self._by_reader if id_ is None or self._schemas is None else self._of_id(id_, self._schemas)
        WORK.begin(len(data))
        value = decode(rest)
        WORK.spend(self._kind.shape.width)
        return value

    @cached_property
    def _by_reader(self) -> Callable[[bytes], Any]:
        return self._prepared(self._reader)

    def _of_id(self, id_: int, schemas: Schemas) -> Callable[[bytes], Any]:
        if id_ not in self._by_id:
            found = of_schema(lambda: schemas.by_id(id_))
            if found is None:
                msg = f"schema {id_} is not in the registry's topic"
                raise UndecodedError(msg)
            if found.type != self._reader.type:
                msg = f"schema {id_} is of type {found.type}, not {self._reader.type}"
                raise UndecodedError(msg)
            self._by_id[id_] = self._prepared(found)
        return self._by_id[id_]

    def _prepared(self, writer: SchemaText) -> Callable[[bytes], Any]:
        """Return the function for a writer's schema; if the schema cannot be used, one that says so for each value."""
        try:
            return of_schema(lambda: self._kind.prepared(writer, is_plain=self._is_plain))
        except UndecodedError as error:
            return partial(_refuse, str(error))


def _refuse(reason: str, _data: bytes) -> None:
    raise UndecodedError(reason)


def of_schema(make: Callable[[], T]) -> T:
    """Return what is made of a schema.

    A schema may be hostile, and the libraries raise errors of any class: whatever the error is, it concerns this schema
    alone.

    Raises:
        UndecodedError: the schema cannot be used.
        UsageError: a library is not installed, or the schema lacks the message that the caller named.
        WriteError: a compiler of schemas could not write its files.
    """
    try:
        return make()
    except (UsageError, WriteError):
        raise
    except Exception as error:
        raise UndecodedError(reason_for(error)) from error


def _by_kind(kind: str, schema: SchemaText, message: str | None, times: str) -> SchemaKind:
    if kind == "avro":
        return AvroDecoder(schema)
    if kind == "json-schema":
        from seglog_format.values.json_schema import JsonSchemaDecoder  # noqa: PLC0415 - of the kinds, one is used

        return JsonSchemaDecoder(schema, times)
    from seglog_format.values.protobuf import ProtobufDecoder  # noqa: PLC0415 - of the kinds, one is used

    return ProtobufDecoder(schema, message, times)


# -- Avro values as columns --------------------------------------------------------------------------------------------


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
        return _struct(ALIASES, [(each.name, each.aliases) for each in kind.fields], inside) if inside else TEXT

    def _union(self, kind: AvroType, above: tuple[str, ...], depth: int) -> Column:
        """Return the column of a union: that of its only branch besides null, or a struct with a member for each."""
        branches = [each for each in kind.branches if each.kind != "null"]
        inside = [self.column(each, above, depth + 1) for each in branches]
        if len(inside) == 1:
            return inside[0]
        names = [(f"member{number}", (each.name or each.kind, *each.aliases)) for number, each in enumerate(branches)]
        return _struct(BRANCH, names, inside) if inside else Column(pa.null())


def _leaf(kind: AvroType) -> Column:
    logical = logical_column(kind)
    if logical is not None:
        return Column(logical)
    if kind.kind == "fixed":
        width = width_of([Shape(pa.binary(), width=1 + kind.size // CELL_SIZE)])
        return Column(pa.binary(kind.size or -1), width=width)
    return Column(PRIMITIVES[kind.kind])


def _struct(key: bytes, names: Iterable[tuple[str, tuple[str, ...]]], inside: list[Column]) -> Column:
    width = width_of([Shape(each.type, width=each.width) for each in inside])
    fields = [
        with_names(pa.field(name, each.type), key, others) for (name, others), each in zip(names, inside, strict=True)
    ]
    return Column(pa.struct(fields), tuple(inside), width)
