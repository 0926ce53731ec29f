"""Decoders of keys and values: by the wire format of Schema Registry, or as text."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa

from seglog_format.errors import UsageError
from seglog_format.values.schemas import SchemaText, schema_of_json
from seglog_format.values.undecoded import UndecodedError
from seglog_format.values.wire import id_and_rest, indexes_and_rest

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.values.schemas import Schemas

TYPES: Final = {"avro": "AVRO", "json-schema": "JSON", "protobuf": "PROTOBUF"}
"""Types of schemas, by the kinds that need a schema."""
KINDS: Final = ("bytes", "string", "json", *TYPES)
"""The ways to decode keys and values."""
NEEDED: Final = {"avro": ("fastavro",), "json-schema": ("jsonschema",), "protobuf": ("google.protobuf", "grpc_tools")}


class Form(NamedTuple):
    """The way to decode a column.

    Attributes:
        kind: one of `KINDS`.
        schema: the reader's; None for kinds without a schema.
        message: name of a Protobuf message; None for the first of the schema.
        is_plain: whether values have no header of Schema Registry: the reader's schema is also the writer's.
        is_chosen: whether the caller gave the schema.
    """

    kind: str
    schema: SchemaText | None = None
    message: str | None = None
    is_plain: bool = False
    is_chosen: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the form as tables store it."""
        schema = None if self.schema is None else self.schema.as_json()
        return {"kind": self.kind, "schema": schema, "message": self.message, "plain": self.is_plain}

    def continued(self, stored: Form | None) -> Form:
        """Return the form for a table that has one: the reader's schema stays, unless the caller gave another."""
        if stored is None or self.is_chosen or stored.kind != self.kind:
            return self
        return self._replace(schema=stored.schema)


def stored_form(value: object) -> Form | None:
    """Return the form from the result of `Form.as_json`; None for any other value."""
    if not isinstance(value, dict):
        return None
    try:
        schema = None if value["schema"] is None else schema_of_json(value["schema"])
        return Form(value["kind"], schema, value["message"], value["plain"])
    except (KeyError, TypeError, ValueError):
        return None


class Decoder(Protocol):
    """Decodes values of one column."""

    @property
    def type(self) -> pa.DataType:
        """Arrow's type of the column."""

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the value cannot be decoded.
        """


class TextDecoder:
    """Decodes any text, or JSON, which stays text."""

    type: pa.DataType = pa.string()

    def __init__(self, *, is_json: bool) -> None:
        self._is_json = is_json

    def decode(self, data: bytes) -> str:
        """Return the text.

        Raises:
            UndecodedError: the value is not UTF-8, or not JSON.
        """
        if self._is_json:
            from seglog_format.values.json_schema import parsed_json  # noqa: PLC0415 - loads the library

            parsed_json(data)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            msg = f"not UTF-8: {error.reason} at byte {error.start}"
            raise UndecodedError(msg) from error


class SchemaDecoder:
    """Decodes values that a serializer of Schema Registry has written.

    Attributes:
        type: of the column.
    """

    def __init__(self, form: Form, schemas: Schemas | None) -> None:
        """Prepare for a reader's schema.

        Args:
            form: with a schema.
            schemas: of the registry; None to use the reader's schema for each value.

        Raises:
            UsageError: the schema is not valid for its type, or a library is not installed.
        """
        assert form.schema is not None
        self._form = form
        self._reader = form.schema
        self._schemas = schemas
        shape, self._decode = _by_kind(form)
        self.type = shape

    def decode(self, data: bytes) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: the header or its schema is missing, or the value does not match the schema.
        """
        if self._form.is_plain:
            return self._decode(data, self._reader, is_plain=True)
        id_, rest = id_and_rest(data)
        return self._decode(rest, self._writer(id_), is_plain=False)

    def _writer(self, id_: int) -> SchemaText:
        if self._schemas is None:
            return self._reader
        found = self._schemas.by_id(id_)
        if found is None:
            msg = f"schema {id_} is not in the registry's topic"
            raise UndecodedError(msg)
        if found.type != self._reader.type:
            msg = f"schema {id_} is of type {found.type}, not {self._reader.type}"
            raise UndecodedError(msg)
        return found


def _by_kind(form: Form) -> tuple[pa.DataType, Callable[..., Any]]:
    """Return the type of a column, and the function that decodes a value's bytes by the writer's schema."""
    schema = form.schema
    assert schema is not None
    if form.kind == "avro":
        from seglog_format.values.avro import AvroDecoder  # noqa: PLC0415 - of the libraries, one is used

        avro = AvroDecoder(schema)
        return avro.shape.type, lambda data, writer, is_plain: avro.decode(data, writer)  # noqa: ARG005
    if form.kind == "json-schema":
        from seglog_format.values.json_schema import JsonSchemaDecoder  # noqa: PLC0415 - as above

        by_schema = JsonSchemaDecoder(schema)
        return by_schema.shape.type, lambda data, writer, is_plain: by_schema.decode(data, writer)  # noqa: ARG005
    from seglog_format.values.protobuf import ProtobufDecoder  # noqa: PLC0415 - as above

    protobuf = ProtobufDecoder(schema, form.message)

    def decode(data: bytes, writer: SchemaText, *, is_plain: bool) -> Any:  # noqa: ANN401 - decoded objects
        if is_plain:
            return protobuf.decode_plain(data)
        indexes, rest = indexes_and_rest(data)
        return protobuf.decode(rest, writer, indexes)

    return protobuf.shape.type, decode


def decoder_of(form: Form, schemas: Schemas | None = None) -> Decoder | None:
    """Return the decoder of a column; None for bytes.

    Args:
        form: of the column.
        schemas: those that values were written by; None to use the reader's schema for each value.

    Raises:
        UsageError: the schema is not valid for its type, or a library is not installed.
    """
    if form.kind == "bytes":
        return None
    if form.kind in {"string", "json"}:
        return TextDecoder(is_json=form.kind == "json")
    for name in NEEDED[form.kind]:
        if not _is_installed(name):
            msg = f"decoding {form.kind} needs {name}: pip install 'seglog-format[decode]'"
            raise UsageError(msg)
    return SchemaDecoder(form, schemas)


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def form_of(
    kind: str,
    subject: str,
    schemas: Schemas | None = None,
    *,
    schema: str | None = None,
    message: str | None = None,
    is_plain: bool = False,
) -> Form:
    """Return the way to decode a column.

    Args:
        kind: one of `KINDS`.
        subject: its newest schema is the reader's; such as ``orders-value``.
        schemas: of the registry; None if there is no topic of a registry.
        schema: text of the reader's schema, instead of the subject's.
        message: name of a Protobuf message; by default the first of the schema.
        is_plain: whether values have no header of Schema Registry.

    Raises:
        UsageError: there is no such kind or no schema.
    """
    if kind not in KINDS:
        msg = f"keys and values are decoded as {', '.join(KINDS)}, not {kind!r}"
        raise UsageError(msg)
    if kind not in TYPES:
        return Form(kind)
    if schema is not None:
        return Form(kind, SchemaText(TYPES[kind], schema), message, is_plain, is_chosen=True)
    found = None if schemas is None else schemas.latest(subject)
    if found is None:
        msg = f"no schema for the subject {subject}: {_where(schemas, subject)}; give a schema as a file"
        raise UsageError(msg)
    if found.type != TYPES[kind]:
        msg = f"the newest schema of {subject} is of type {found.type}: {kind} does not decode it"
        raise UsageError(msg)
    return Form(kind, found, message, is_plain)


def _where(schemas: Schemas | None, subject: str) -> str:
    """Return why a subject has no schema."""
    if schemas is None:
        return "there is no topic _schemas"
    contexts = schemas.contexts_of(subject)
    if contexts:
        return f"only the context {', '.join(contexts)} of the topic _schemas has it, whose ids are not looked up"
    return "the topic _schemas has none"


def value_decoder(
    kind: str,
    subject: str = "",
    schemas: Schemas | None = None,
    *,
    schema: str | None = None,
    message: str | None = None,
    is_plain: bool = False,
) -> Decoder:
    """Return a decoder of keys or values for `Partition.scan`.

    Needs the extra ``decode``.

    Args:
        kind: ``string``, ``json``, ``avro``, ``json-schema`` or ``protobuf``.
        subject: its newest schema is the reader's; such as ``orders-value``.
        schemas: those that values were written by, from `read_schemas`.
        schema: text of the reader's schema, instead of the subject's.
        message: name of a Protobuf message; by default the first of the schema.
        is_plain: whether values have no header of Schema Registry: they were written by ``schema``.

    Raises:
        UsageError: there is no such kind or schema, or a library is not installed.

    Examples:
        >>> from seglog_format import open_partition, value_decoder
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     log.scan(["offset", "value"], value=value_decoder("json")).schema.field("value").type
        DataType(string)
    """
    found = decoder_of(form_of(kind, subject, schemas, schema=schema, message=message, is_plain=is_plain), schemas)
    if found is None:
        msg = "bytes need no decoder"
        raise UsageError(msg)
    return found
