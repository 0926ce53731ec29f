"""Records of Kafka's own topics as columns: a struct with a field for each type of record, of which one is not null."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from seglog_format.codec.coordinator_records import decode_coordinator_record, decode_metadata_record
from seglog_format.errors import FormatError, UsageError
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import SIMPLE_TYPES, ArrayOf, Structure, table
from seglog_format.values.schemas import UndecodedError
from seglog_format.values.shape import WORK, Shape, list_of, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.schema.protocol import Field, FieldType, MessageDefinition

TYPES: Final = {
    "bool": Shape(pa.bool_()),
    "int8": Shape(pa.int32()),
    "int16": Shape(pa.int32()),
    "uint16": Shape(pa.int32()),
    "int32": Shape(pa.int32()),
    "uint32": Shape(pa.int64()),
    "int64": Shape(pa.int64()),
    "float64": Shape(pa.float64(), lambda value: float(value.strip('"')) if isinstance(value, str) else value),
    "uuid": Shape(pa.string()),
    "string": Shape(pa.string()),
    "bytes": Shape(pa.binary(), base64.b64decode),
}
"""Shapes by Kafka's types, of values as decoders give them for JSON; Iceberg has no integers of 8 and 16 bits."""
SCALARS: Final = {id(SIMPLE_TYPES[name]): shape for name, shape in TYPES.items()}
NEWEST: Final = table("cluster_metadata")["release"]
HEAD: Final = {"type": TYPES["string"], "version": TYPES["int16"]}


class KafkaDecoder:
    """Decodes the keys or values of one of Kafka's own topics.

    Attributes:
        type: of the column.
        takes_keys: whether values are decoded by their keys, which say the type of record.
    """

    def __init__(self, topic: str, *, has_keys: bool) -> None:
        """Prepare for a topic.

        Args:
            topic: its name.
            has_keys: whether the column is that of the keys.

        Raises:
            UsageError: the topic is not one of Kafka's own that are decoded.
        """
        if topic not in {**COORDINATOR_TOPICS, **FRAMED_TOPICS}:
            known = ", ".join(sorted({**COORDINATOR_TOPICS, **FRAMED_TOPICS}))
            msg = f"kafka decodes the topics {known}, and not {topic}"
            raise UsageError(msg)
        if has_keys and topic not in COORDINATOR_TOPICS:
            msg = f"the keys of {topic} are null: only its values are decoded"
            raise UsageError(msg)
        self._topic = topic
        self._has_keys = has_keys
        self.takes_keys = not has_keys
        kinds = {kind.type: kind.key if has_keys else kind.value for kind in COORDINATOR_TOPICS.get(topic, {}).values()}
        framed = {each.name: each for each in FRAMED_TOPICS.get(topic, {}).values()}
        parts = {name: _message(each) for name, each in (kinds | framed).items()}
        self._shape = struct_of(HEAD | {name: part for name, part in parts.items() if part.type.num_fields})
        self.type = self._shape.type

    def decode(self, data: Any) -> Any:  # noqa: ANN401 - bytes of a key, or a pair of key and value
        """Decode a key, or a value by its key, to an object in the form that Arrow accepts.

        Raises:
            UndecodedError: its type or version is unknown, or the bytes do not fit it.
        """
        key, value = (data, None) if self._has_keys else data
        WORK.begin(len(key or b"") + len(value or b""))
        try:
            found = self._coordinator(key, value) if self._topic in COORDINATOR_TOPICS else self._framed(value)
        except FormatError as error:
            at = f"{error.location.field} at byte {error.location.position}"
            msg = f"{at}: expected {error.expected}, found {error.found}"
            raise UndecodedError(msg) from error
        WORK.spend(self._shape.width)
        return self._shape.of(found)

    def _coordinator(self, key: bytes | None, value: bytes | None) -> dict[str, object] | None:
        found = decode_coordinator_record(self._topic, key, value)
        if "version" not in found:
            what = "no key" if key is None else f"a key of version {found['unknownVersion']}"
            msg = f"{what}, which no release up to {NEWEST} writes"
            raise UndecodedError(msg)
        kind = str(found["type"])
        if self._has_keys:
            return {"type": kind, "version": found["version"], kind: found["key"]}
        if found["value"] is None:
            return None
        if "valueVersion" not in found:
            msg = f"{kind}: a value of an unknown version: {found['value']}"
            raise UndecodedError(msg)
        return {"type": kind, "version": found["valueVersion"], kind: found["value"]}

    def _framed(self, value: bytes | None) -> dict[str, object]:
        found = decode_metadata_record(self._topic, value)
        if "data" not in found:
            kind = found.get("apiKey", found["type"])
            msg = f"a record of type {kind} and version {found['version']}, which no release up to {NEWEST} writes"
            raise UndecodedError(msg)
        return {"type": found["type"], "version": found["version"], str(found["type"]): found["data"]}


def _message(definition: MessageDefinition) -> Shape:
    """Return the shape of all versions of a message; a field that a version lacks is null."""
    layouts = (definition, *definition.earlier)
    return _fields(field for layout in layouts for field in layout.fields)


def _fields(fields: Iterable[Field]) -> Shape:
    """Return the shape of fields by their names; those of one name in several layouts are one."""
    by_name: dict[str, list[FieldType]] = {}
    for field in fields:
        by_name.setdefault(field.name, []).append(field.type)
    return struct_of({name: _shape(kinds) for name, kinds in by_name.items()})


def _shape(kinds: list[FieldType]) -> Shape:
    first = kinds[0]
    if isinstance(first, ArrayOf):
        return list_of(_shape([each.element for each in kinds if isinstance(each, ArrayOf)]))
    if isinstance(first, Structure):
        return _fields(field for each in kinds if isinstance(each, Structure) for field in each.fields)
    return SCALARS[id(first)]
