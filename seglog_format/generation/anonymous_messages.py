"""Replace names, ids and times in records of Kafka's own topics; everything else in them stays."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_whole, encode_message
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.model import END_MARKER_TYPES
from seglog_format.schema.control_record import EARLY_LEADER_CHANGE, KRAFT_VALUES
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.fixed_fields import CONTROL_RECORD_KEY, END_TRANSACTION_MARKER
from seglog_format.schema.metadata_records import FRAMED_TOPICS, MetadataFrame
from seglog_format.schema.protocol import SIMPLE_TYPES, UNKNOWN_TAGGED_FIELDS, ArrayOf, Blob, Structure, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.generation.pseudonyms import Pseudonyms
    from seglog_format.schema.protocol import FieldType, MessageDefinition

VERSION_SIZE: Final = 2
NOWHERE: Final = Location()
TIME_SUFFIXES: Final = ("Timestamp", "TimestampMs", "timestamp", "TimeMs")
"""Ends of the names of fields that hold a time."""


class Replaced(NamedTuple):
    """A key and a value after replacement.

    Attributes:
        key: of the same size; None for null.
        value: of the same size; None for null.
        is_opaque: whether one of them is of no known form, and was replaced as a whole.
    """

    key: bytes | None
    value: bytes | None
    is_opaque: bool = False


class MessageReplacer:
    """Replaces keys and values of the records of a topic.

    Args:
        topic: its name.
        pseudonyms: the replacements.
    """

    def __init__(self, topic: str, pseudonyms: Pseudonyms) -> None:
        self._topic = topic
        self._pseudonyms = pseudonyms

    def record(self, key: bytes | None, value: bytes | None) -> Replaced:
        """Replace key and value of a record."""
        if self._topic in COORDINATOR_TOPICS and key is not None:
            return self._coordinator(key, value)
        if self._topic in FRAMED_TOPICS and value is not None:
            return self._either(key, value, self._framed)
        return Replaced(self._noise(key), self._noise(value))

    def control(self, key: bytes | None, value: bytes | None) -> Replaced:
        """Replace the value of a control record; its key, and the value of an end marker, name nothing."""
        if key is None or value is None or len(key) != CONTROL_RECORD_KEY.size:
            return Replaced(self._noise(key), self._noise(value), is_opaque=True)
        _, kind = CONTROL_RECORD_KEY.unpack_from(key)
        if kind in END_MARKER_TYPES and len(value) == END_TRANSACTION_MARKER.size:
            return Replaced(key, value)
        return self._either(key, value, lambda data: self._kraft(kind, data), keeps_key=True)

    def _noise(self, data: bytes | None) -> bytes | None:
        return None if data is None else self._pseudonyms.noise(data)

    def _either(
        self, key: bytes | None, value: bytes, known_form: Callable[[bytes], bytes | None], *, keeps_key: bool = False
    ) -> Replaced:
        """Replace a value, or all of it if it is of no known form."""
        known = known_form(value)
        new_key = key if keeps_key else self._noise(key)
        return Replaced(new_key, known or self._noise(value), is_opaque=known is None)

    def _coordinator(self, key: bytes, value: bytes | None) -> Replaced:
        version = int.from_bytes(key[:VERSION_SIZE], "big", signed=True)
        kind = COORDINATOR_TOPICS[self._topic].get(version)
        new_key = None if kind is None else self._message(kind.key, 0, key[VERSION_SIZE:])
        if kind is None or new_key is None:
            return Replaced(self._noise(key), self._noise(value), is_opaque=True)
        new_key = key[:VERSION_SIZE] + new_key
        if value is None:
            return Replaced(new_key, None)
        version = int.from_bytes(value[:VERSION_SIZE], "big", signed=True)
        body = self._message(kind.value, version, value[VERSION_SIZE:])
        if body is None:
            rest = self._pseudonyms.noise(value[VERSION_SIZE:])
            return Replaced(new_key, value[:VERSION_SIZE] + rest, is_opaque=True)
        return Replaced(new_key, value[:VERSION_SIZE] + body)

    def _framed(self, value: bytes) -> bytes | None:
        try:
            frame = parse(MetadataFrame, value, NOWHERE, requirement="SEG-CTL-010")
        except FormatError:
            return None
        definition = FRAMED_TOPICS[self._topic].get(frame.type)
        body = None if definition is None else self._message(definition, frame.version, value[frame.end :])
        return None if body is None else value[: frame.end] + body

    def _kraft(self, kind: int, value: bytes) -> bytes | None:
        definition = KRAFT_VALUES.get(kind)
        version = int.from_bytes(value[:VERSION_SIZE], "big", signed=True)
        known = None if definition is None else self._message(definition, version, value)
        return known or self._message(EARLY_LEADER_CHANGE, 0, value)

    def _message(self, definition: MessageDefinition, version: int, data: bytes) -> bytes | None:
        """Return the message with its replacements, of the same size; None if it has no known form."""
        if not any(layout.describes(version) for layout in (definition, *definition.earlier)):
            return None
        try:
            fields, line = decode_whole(definition, version, data, NOWHERE)
            layout = next(each for each in (definition, *definition.earlier) if each.releases[1] == line)
            found = encode_message(layout, version, self._structure(Structure(layout.fields), fields))
        except (FormatError, UsageError):
            return None
        return found if len(found) == len(data) else None

    def _structure(self, kind: Structure, fields: Mapping[str, Any]) -> dict[str, Any]:
        types = {field.name: field.type for field in kind.fields}
        replaced = {name: self._field(types[name], name, value) for name, value in fields.items() if name in types}
        unknown = fields.get(UNKNOWN_TAGGED_FIELDS)
        if unknown:
            replaced[UNKNOWN_TAGGED_FIELDS] = [each | {"data": self._blob(each["data"])} for each in unknown]
        return replaced

    def _field(self, kind: FieldType, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        if value is None:
            return None
        if isinstance(kind, Structure):
            return self._structure(kind, value)
        if isinstance(kind, ArrayOf):
            return [self._field(kind.element, name, each) for each in value]
        return self._simple(kind, name, value)

    def _simple(self, kind: FieldType, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(kind, Text):
            return self._pseudonyms.name(value)
        if isinstance(kind, Blob):
            return self._blob(value)
        if kind is SIMPLE_TYPES["uuid"]:
            return self._pseudonyms.uuid(value)
        is_time = kind is SIMPLE_TYPES["int64"] and name.endswith(TIME_SUFFIXES)
        return self._pseudonyms.time(value) if is_time else value

    def _blob(self, text: str) -> str:
        return base64.b64encode(self._pseudonyms.noise(base64.b64decode(text))).decode()
