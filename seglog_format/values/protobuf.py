"""Protobuf values, by protobuf's own classes; protoc compiles the text of schemas."""

from __future__ import annotations

import base64
import binascii
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from seglog_format.errors import UsageError
from seglog_format.storage.protoc import compiled
from seglog_format.values.shape import Shape, text_of
from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FileDescriptor

    from seglog_format.values.schemas import SchemaText

WELL_KNOWN: Final = (
    *("any", "source_context", "type", "api", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers"),
    "descriptor",
)
"""Files that protobuf contains, each after those that it imports: registered descriptors do not include them."""
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


class ProtobufDecoder:
    """Decodes Protobuf values by a reader's schema.

    Attributes:
        shape: of the column.
    """

    def __init__(self, reader: SchemaText, message: str | None = None) -> None:
        """Prepare for a reader's schema.

        Args:
            reader: the schema.
            message: name of the message that the column holds; by default the first of the file.

        Raises:
            UsageError: the text is not a Protobuf schema, or has no such message.
        """
        try:
            file = _file_of(reader)
        except UndecodedError as error:
            msg = f"the reader's schema: {error}"
            raise UsageError(msg) from error
        self._message = _named(file, message)
        self._class: Any = GetMessageClass(self._message)
        self.shape = _shape(self._message, ())
        self._writers: dict[SchemaText, FileDescriptor] = {}

    def decode(self, data: bytes, writer: SchemaText, indexes: tuple[int, ...]) -> Any:  # noqa: ANN401 - decoded objects
        """Decode a value to an object in the form that Arrow accepts.

        Args:
            data: the message.
            writer: the schema that it was written by.
            indexes: path to its type in the writer's file.

        Raises:
            UndecodedError: the value is not a message of the column's type.
        """
        name = _at(self._writer(writer), indexes)
        if name != self._message.full_name:
            msg = f"a message {name}, and the column holds {self._message.full_name}"
            raise UndecodedError(msg)
        return self.decode_plain(data)

    def decode_plain(self, data: bytes) -> Any:  # noqa: ANN401 - as above
        """Decode a message of the column's type.

        Raises:
            UndecodedError: the value is not such a message.
        """
        try:
            return self.shape.of(self._class.FromString(data))
        except (DecodeError, ValueError) as error:
            msg = f"not a Protobuf message {self._message.full_name}: {error}"
            raise UndecodedError(msg) from error

    def _writer(self, writer: SchemaText) -> FileDescriptor:
        if writer not in self._writers:
            self._writers[writer] = _file_of(writer)
        return self._writers[writer]


def _named(file: FileDescriptor, message: str | None) -> Descriptor:
    names = list(file.message_types_by_name)
    if message is None and names:
        return file.message_types_by_name[names[0]]
    package = f"{file.package}." if file.package else ""
    try:
        return file.pool.FindMessageTypeByName(message if message is None or "." in message else package + message)
    except (KeyError, TypeError):
        msg = f"the reader's schema has no message {message or 'at all'}"
        raise UsageError(msg) from None


def _at(file: FileDescriptor, indexes: tuple[int, ...]) -> str:
    """Return the name of the message at a path of indexes."""
    inside: Any = list(file.message_types_by_name.values())
    found = None
    for index in indexes:
        if not 0 <= index < len(inside):
            msg = f"its schema has no message at {list(indexes)}"
            raise UndecodedError(msg)
        found = inside[index]
        inside = found.nested_types
    assert found is not None
    name: str = found.full_name
    return name


def _file_of(schema: SchemaText) -> FileDescriptor:
    """Return the descriptor of a schema; its types are in a pool of their own.

    Raises:
        UndecodedError: the schema does not compile.
    """
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
    except (TypeError, KeyError) as error:
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


def _shape(message: Descriptor, above: tuple[str, ...]) -> Shape:
    if message.full_name in above or not message.fields:
        return Shape(pa.string(), _as_text)
    inside = (*above, message.full_name)
    fields = [(field, _field_shape(field, inside)) for field in message.fields]
    kind = pa.struct([pa.field(field.name, shape.type) for field, shape in fields])
    plans = [(field.name, field.has_presence, shape) for field, shape in fields]

    def change(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a message of any type
        return {
            name: None if has_presence and not value.HasField(name) else shape.of(getattr(value, name))
            for name, has_presence, shape in plans
        }

    return Shape(kind, change)


def _as_text(value: Any) -> str:  # noqa: ANN401 - as above
    return text_of(MessageToDict(value, preserving_proto_field_name=True))


def _field_shape(field: FieldDescriptor, above: tuple[str, ...]) -> Shape:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        keys, values = (_single(kind.fields_by_name[name], above) for name in ("key", "value"))
        return Shape(
            pa.map_(keys.type, values.type),
            lambda found: [(keys.of(key), values.of(each)) for key, each in found.items()],
        )
    shape = _single(field, above)
    if field.is_repeated:
        return Shape(pa.list_(shape.type), lambda found: [shape.of(each) for each in found])
    return shape


def _single(field: FieldDescriptor, above: tuple[str, ...]) -> Shape:
    if field.message_type is not None:
        return _shape(field.message_type, above)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return Shape(pa.string(), lambda number: names.get(number, str(number)))
    return Shape(SCALARS[field.type])


SCALARS: Final = {getattr(FieldDescriptor, f"TYPE_{name}"): kind for name, kind in TYPES.items()}
