"""Protobuf values, by protobuf's own classes; protoc compiles the text of schemas."""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from google.protobuf import wrappers_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from seglog_format.errors import UsageError
from seglog_format.storage.child_processes import compiled
from seglog_format.values.schemas import TYPED, UndecodedError, indexes_and_rest
from seglog_format.values.shape import MAX_DEPTH, PROTOBUF_TIMES, WORK, Shape, Visits, fields_of, list_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.protobuf.descriptor import Descriptor, FileDescriptor

    from seglog_format.values.schemas import SchemaText

WELL_KNOWN: Final = (
    *("any", "source_context", "type", "api", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"),
    "descriptor",
)
"""Files that protobuf contains, each after those that it imports: registered descriptors do not include them."""
MAX_REFERENCES: Final = 256
"""Maximum number of schemas that a schema refers to: each may be compiled by itself."""
MAX_TRIED: Final = 16
"""Number of schemas to try before no more values are asked for their message."""
TYPES: Final = {
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "INT64": pa.int64(),
    "UINT64": pa.decimal128(20, 0),
    "INT32": pa.int32(),
    "FIXED64": pa.decimal128(20, 0),
    "FIXED32": pa.int64(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "UINT32": pa.int64(),
    "ENUM": pa.string(),
    "SFIXED32": pa.int32(),
    "SFIXED64": pa.int64(),
    "SINT32": pa.int32(),
    "SINT64": pa.int64(),
}
"""Arrow's types by Protobuf's; tables have no unsigned types, so an unsigned one becomes a wider signed one."""
WRAPPERS: Final = {f"google.protobuf.{name}" for name in wrappers_pb2.DESCRIPTOR.message_types_by_name}
"""Messages that stand for a number or text that may be null."""


class ProtobufDecoder:
    """Decodes Protobuf values by a reader's schema.

    Attributes:
        shape: of the column.
    """

    def __init__(self, reader: SchemaText, message: str | None = None, times: str = TYPED) -> None:
        """Prepare for a reader's schema.

        Args:
            reader: the schema.
            message: name of the message that the column holds; by default the first of the file.
            times: one of `TIMES_AS`.

        Raises:
            UsageError: the schema has no such message.
            Exception: of any class, for text that is not a Protobuf schema.
        """
        self._message = _named(file_of(reader), message)
        self._class: Any = GetMessageClass(self._message)
        self.shape = _Shapes(times).shape(self._message, ())

    def prepared(self, writer: SchemaText, *, is_plain: bool) -> Callable[[bytes], Any]:
        """Return the function that decodes values of a writer's schema to objects in the form that Arrow accepts.

        Raises:
            Exception: as above.
        """
        if is_plain:
            return self._decode
        names = MessageNames(file_of(writer))

        def decode(data: bytes) -> Any:  # noqa: ANN401 - decoded objects
            indexes, rest = indexes_and_rest(data)
            name = names.at(indexes)
            if name != self._message.full_name:
                msg = f"a message {name}, and the column holds {self._message.full_name}"
                raise UndecodedError(msg)
            return self._decode(rest)

        return decode

    def _decode(self, data: bytes) -> Any:  # noqa: ANN401 - as above
        try:
            message = self._class.FromString(data)
        except DecodeError as error:
            msg = f"not a Protobuf message {self._message.full_name}: {error}"
            raise UndecodedError(msg) from error
        return self.shape.of(message)


class MessageNames:
    """The names of the messages in a file, by their paths of indexes."""

    def __init__(self, file: FileDescriptor) -> None:
        self._outer = list(file.message_types_by_name.values())

    def at(self, indexes: tuple[int, ...]) -> str:
        """Return the full name of the message at a path.

        Raises:
            UndecodedError: there is none.
        """
        inside: Sequence[Descriptor] = self._outer
        name = ""
        for index in indexes:
            if not 0 <= index < len(inside):
                msg = f"its schema has no message at {list(indexes)}"
                raise UndecodedError(msg)
            name, inside = inside[index].full_name, inside[index].nested_types
        return name


class MessageFinder:
    """Finds the names of the messages that values hold, as far as a reader's schema has these messages."""

    def __init__(self, reader: SchemaText) -> None:
        self._reader = reader
        self._names: dict[SchemaText, MessageNames | None] = {}

    @property
    def is_tired(self) -> bool:
        """Return whether many schemas were tried."""
        return len(self._names) >= MAX_TRIED

    def message_in(self, data: bytes, writer: SchemaText) -> str | None:
        """Return the full name of a value's message, by the path of indexes before it.

        Args:
            data: the value, after the id of its schema.
            writer: its schema.

        Returns:
            None if an earlier value showed that the schema cannot be used, or if the reader's schema lacks the message.

        Raises:
            Exception: of any class; both may be hostile.
        """
        if writer not in self._names:
            self._names[writer] = None
            self._names[writer] = MessageNames(file_of(writer))
        names = self._names[writer]
        if names is None:
            return None
        name = names.at(indexes_and_rest(data)[0])
        try:
            file_of(self._reader).pool.FindMessageTypeByName(name)
        except KeyError:
            return None
        return name


def _named(file: FileDescriptor, message: str | None) -> Descriptor:
    """Return the message of a name, with or without the file's package; the first message for None."""
    names = list(file.message_types_by_name)
    if message is None and names:
        return file.message_types_by_name[names[0]]
    for name in (f"{file.package}.{message}", message) if message is not None else ():
        with suppress(KeyError, TypeError):
            return file.pool.FindMessageTypeByName(name)
    msg = f"the reader's schema has no message {message or 'at all'}"
    raise UsageError(msg)


@lru_cache(maxsize=16)
def file_of(schema: SchemaText) -> FileDescriptor:
    """Return the descriptor of a schema; its types are in a pool of their own.

    Raises:
        UndecodedError: the schema does not compile.
    """
    if len(schema.references) > MAX_REFERENCES:
        msg = f"the schema refers to {len(schema.references)} others"
        raise UndecodedError(msg)
    described = _described(schema.text)
    if described is None:
        files = _compiled(schema.text, dict(schema.references))
    else:
        others = [_renamed(_described(text), name, text) for name, text in schema.references]
        files = [*_well_known(), *others, described]
    pool = DescriptorPool()
    try:
        for each in files:
            pool.AddSerializedFile(each.SerializeToString())
        return pool.FindFileByName(files[-1].name)
    except (TypeError, KeyError) as error:  # names that files lack, or have twice
        msg = f"not a Protobuf schema: {error}"
        raise UndecodedError(msg) from error


def _compiled(text: str, others: dict[str, str]) -> list[FileDescriptorProto]:
    try:
        return list(FileDescriptorSet.FromString(compiled(text, others)).file)
    except ValueError as error:
        msg = f"not a Protobuf schema: {error}"
        raise UndecodedError(msg) from error


def _described(text: str) -> FileDescriptorProto | None:
    """Return the descriptor in a schema, in the form that clients register; None if the schema is text."""
    try:
        found = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        return None
    found.name = found.name or "value.proto"
    return found


def _renamed(found: FileDescriptorProto | None, name: str, text: str) -> FileDescriptorProto:
    if found is None:
        found = _compiled(text, {})[-1]
    found.name = name
    return found


def _well_known() -> list[FileDescriptorProto]:
    files = []
    for name in WELL_KNOWN:
        found = FileDescriptorProto()
        import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR.CopyToProto(found)
        files.append(found)
    return files


class _Shapes:
    """Makes shapes of messages. Messages that contain themselves, or are nested too deeply, are JSON as text."""

    def __init__(self, times: str) -> None:
        self._times = times
        self._visits = Visits()

    def shape(self, message: Descriptor, above: tuple[str, ...]) -> Shape:
        """Return the shape of a message.

        Raises:
            UndecodedError: it has too many fields.
        """
        self._visits.add()
        if message.full_name in above or len(above) > MAX_DEPTH or not message.fields:
            return Shape(pa.string(), _as_text)
        inside = (*above, message.full_name)
        fields = [(field.name, self._field(field, inside), _value_of(field)) for field in message.fields]
        return fields_of(fields, {field.name: [f"number {field.number}"] for field in message.fields})

    def _field(self, field: FieldDescriptor, above: tuple[str, ...]) -> Shape:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            keys, values = (self._single(kind.fields_by_name[name], above) for name in ("key", "value"))

            def pairs(found: Any) -> list[Any]:  # noqa: ANN401 - a map of any types
                WORK.spend(len(found) * (values.width + 1))
                return [(keys.of(key), values.of(each)) for key, each in found.items()]

            return Shape(pa.map_(keys.type, values.type), pairs)
        shape = self._single(field, above)
        return list_of(shape) if field.is_repeated else shape

    def _single(self, field: FieldDescriptor, above: tuple[str, ...]) -> Shape:
        self._visits.add()
        if self._times == TYPED and field.message_type is not None and field.message_type.full_name in PROTOBUF_TIMES:
            return PROTOBUF_TIMES[field.message_type.full_name]
        if field.message_type is not None and field.message_type.full_name in WRAPPERS:
            return Shape(SCALARS[field.message_type.fields_by_name["value"].type], attrgetter("value"))
        if field.message_type is not None:
            return self.shape(field.message_type, above)
        if field.enum_type is not None:
            names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
            return Shape(pa.string(), lambda number: names.get(number, str(number)))
        return Shape(SCALARS[field.type])


def _value_of(field: FieldDescriptor) -> Callable[[Any], Any]:
    """Return the function that gets the value of a field, or null if it has none, from a message."""
    name, of_name = field.name, attrgetter(field.name)
    return (lambda message: of_name(message) if message.HasField(name) else None) if field.has_presence else of_name


def _as_text(value: Any) -> str:  # noqa: ANN401 - a message of any type
    return text_of(MessageToDict(value, preserving_proto_field_name=True))


SCALARS: Final = {getattr(FieldDescriptor, f"TYPE_{name}"): kind for name, kind in TYPES.items()}
