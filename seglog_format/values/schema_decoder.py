"""Decoders of values with a schema. Each schema is prepared once, and may be hostile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from seglog_format.errors import UsageError, WriteError
from seglog_format.values.shape import WORK
from seglog_format.values.undecoded import UndecodedError, reason_for
from seglog_format.values.wire import id_and_rest

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.values.schemas import Schemas, SchemaText
    from seglog_format.values.shape import Shape

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
    """

    def __init__(
        self, kind: str, schema: SchemaText, schemas: Schemas | None, *, message: str | None, is_plain: bool
    ) -> None:
        """Prepare for a reader's schema.

        Args:
            kind: of values: ``avro``, ``json-schema`` or ``protobuf``.
            schema: of the reader.
            message: name of the message, for Protobuf.
            is_plain: whether values have no header of a serializer.
            schemas: of the registry; None to use the reader's schema for each value.

        Raises:
            UsageError: the schema is not valid for its type, or a library is not installed.
        """
        self._is_plain = is_plain
        self._reader = schema
        self._schemas = schemas
        try:
            self._kind = of_schema(lambda: _by_kind(kind, schema, message))
        except UndecodedError as error:
            msg = f"the reader's schema: {error}"
            raise UsageError(msg) from error
        self._by_id: dict[int, Callable[[bytes], Any]] = {}
        self._by_reader: Callable[[bytes], Any] | None = None
        self.type = self._kind.shape.type

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the header or its schema is missing, or the value does not match the schema.
            Exception: of other classes, for hostile bytes.
        """
        id_, rest = (None, data) if self._is_plain else id_and_rest(data)
        decode = self._of_reader() if id_ is None or self._schemas is None else self._of_id(id_, self._schemas)
        WORK.begin(len(data))
        value = decode(rest)
        WORK.spend(self._kind.shape.width)
        return value

    def _of_reader(self) -> Callable[[bytes], Any]:
        if self._by_reader is None:
            self._by_reader = self._prepared(self._reader)
        return self._by_reader

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


def _by_kind(kind: str, schema: SchemaText, message: str | None) -> SchemaKind:
    if kind == "avro":
        from seglog_format.values.avro import AvroDecoder  # noqa: PLC0415 - of the kinds, one is used

        return AvroDecoder(schema)
    if kind == "json-schema":
        from seglog_format.values.json_schema import JsonSchemaDecoder  # noqa: PLC0415 - as above

        return JsonSchemaDecoder(schema)
    from seglog_format.values.protobuf import ProtobufDecoder  # noqa: PLC0415 - as above

    return ProtobufDecoder(schema, message)
