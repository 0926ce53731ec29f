"""The schemas of Schema Registry, the header before a value that names one, and the error for undecodable bytes."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# -- the error of a decoder for bytes that it cannot decode ------------------------------------------------------------


MAX_REASON: Final = 200
"""Maximum characters of a reason."""
MAX_SHOWN: Final = 60
"""Maximum characters or bytes of a value in a reason."""


class UndecodedError(Exception):
    """The bytes do not match the schema. Callers of the package get the reason as text.

    Attributes:
        path: names of the fields that the value is in, with dots between; empty for the whole value.
    """

    path = ""

    def inside(self, name: str) -> UndecodedError:
        """Return the error of a field for the value that the field is in."""
        self.path = f"{name}.{self.path}".rstrip(".")
        return self

    def __str__(self) -> str:
        return f"{self.path}: {super().__str__()}" if self.path else super().__str__()


def reason_for(error: Exception) -> str:
    """Return why bytes or a schema cannot be decoded: one line that is valid text, with the class of other errors."""
    first = str(error).partition("\n")[0]
    text = first if isinstance(error, UndecodedError) else f"{type(error).__name__} {first}".rstrip()
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}..."


# -- the header that serializers of Schema Registry write before the bytes of an object --------------------------------


MAGIC: Final = 0
HEADER: Final = struct.Struct(">bI")
MAX_INDEXES: Final = 64
"""Maximum nesting depth of a message type."""


def id_and_rest(data: bytes) -> tuple[int, bytes]:
    """Return the id of the schema that a value was written by, and the bytes after the header.

    Raises:
        UndecodedError: the value has no such header.
    """
    if len(data) < HEADER.size or data[0] != MAGIC:
        found = f"first byte {data[0]}" if data else "no bytes"
        msg = f"no header of Schema Registry: {found}, {len(data)} bytes"
        raise UndecodedError(msg)
    return HEADER.unpack_from(data)[1], data[HEADER.size :]


def indexes_and_rest(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of indexes to the type of a Protobuf value in its file, and the bytes after the path.

    Raises:
        UndecodedError: the indexes are cut off or too many.
    """
    count, position = _zigzag(data, 0)
    if count == 0:
        return (0,), data[position:]
    if not 0 < count <= MAX_INDEXES:
        msg = f"{count} message indexes"
        raise UndecodedError(msg)
    indexes = []
    for _ in range(count):
        index, position = _zigzag(data, position)
        indexes.append(index)
    return tuple(indexes), data[position:]


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 28:  # noqa: PLR2004 - five bytes of seven bits
            msg = "the message indexes are cut off"
            raise UndecodedError(msg)
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1), position


# -- the schemas of Schema Registry, from the records of its topic `_schemas` ------------------------------------------


TYPES: Final = {"avro": "AVRO", "json-schema": "JSON", "protobuf": "PROTOBUF"}
"""Types of schemas, by the kinds of keys and values that need a schema."""
KAFKA: Final = "kafka"
OF_ONE_TOPIC: Final = (*TYPES, KAFKA)
"""Kinds whose columns are those of one topic."""
KINDS: Final = ("bytes", "string", "json", *OF_ONE_TOPIC)
"""The ways to decode keys and values."""
TYPED: Final = "typed"
TIMES_AS: Final = (TYPED, "written")
"""Whether times of Protobuf and JSON become columns of times, or stay numbers and text as they were written."""
AS_MAP: Final = "map"
HEADERS_AS: Final = ("list", AS_MAP)
"""Whether the headers of a record are a list of pairs, or a map, which has each key once."""
DEFAULT_TYPE: Final = "AVRO"
"""The type of a schema whose record names no type."""


class SchemaText(NamedTuple):
    """A schema, with all schemas that it refers to.

    Attributes:
        type: ``AVRO``, ``JSON`` or ``PROTOBUF``.
        text: of the schema.
        references: names and texts of other schemas, each after those that it refers to.
    """

    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the schema as JSON."""
        return {"type": self.type, "text": self.text, "references": [list(each) for each in self.references]}


def schema_of_json(value: dict[str, Any]) -> SchemaText:
    """Return the schema from the result of `SchemaText.as_json`."""
    return SchemaText(value["type"], value["text"], tuple((name, text) for name, text in value["references"]))


DEFAULT_CONTEXT: Final = "."
QUALIFIED: Final = re.compile(r":(?P<context>\.[^:]*):(?P<name>.*)", re.DOTALL)
"""Subjects of other contexts; each context numbers its schemas separately."""


_Reference: TypeAlias = tuple[str, str, int]
"""Name, subject and version."""


class _Stored(NamedTuple):
    context: str
    id: int
    type: str
    text: str
    references: tuple[_Reference, ...]
    is_deleted: bool


@dataclass(slots=True)
class Schemas:
    """The schemas of a registry, from the records of its topic in their order."""

    _versions: dict[str, dict[int, _Stored]] = field(default_factory=dict)
    _by_id: dict[int, _Stored] = field(default_factory=dict)

    def add(self, key: bytes | None, value: bytes | None) -> None:
        """Apply a record; ignore one that does not concern a schema, such as a setting of the registry."""
        name = _object(key)
        subject, version = name.get("subject"), name.get("version")
        if not isinstance(subject, str):
            return
        if name.get("keytype") == "DELETE_SUBJECT":
            self._delete(_plain_subject(subject), _object(value).get("version"))
        elif name.get("keytype") == "SCHEMA" and type(version) is int:
            self._store(_plain_subject(subject), version, value)

    def _store(self, subject: str, version: int, value: bytes | None) -> None:
        versions = self._versions.setdefault(subject, {})
        if not value:  # null, or empty: some registries delete with an empty value
            versions.pop(version, None)  # values by its id may still be there
            return
        stored = _stored(_context_of(subject), _object(value))
        if stored is not None:
            versions[version] = stored
        if stored is not None and stored.context == DEFAULT_CONTEXT:
            self._by_id[stored.id] = stored

    def _delete(self, subject: str, last: object) -> None:
        """Mark as deleted the versions that a subject had when it was deleted."""
        versions = self._versions.get(subject, {})
        for version, stored in versions.items():
            if type(last) is int and version <= last:
                versions[version] = stored._replace(is_deleted=True)

    def by_id(self, id_: int) -> SchemaText | None:
        """Return the schema with an id of the default context; None if there is none. It may have been deleted."""
        stored = self._by_id.get(id_)
        return None if stored is None else self._whole(stored)

    def latest(self, subject: str) -> SchemaText | None:
        """Return the newest schema of a subject that was not deleted; None if there is none."""
        known = self._versions.get(subject, {})
        versions = [version for version, stored in known.items() if not stored.is_deleted]
        return self._whole(known[max(versions)]) if versions else None

    def subjects(self) -> list[str]:
        """Return the names of all subjects with a schema that was not deleted, sorted."""
        known = self._versions.items()
        return sorted(subject for subject, all_ in known if any(not stored.is_deleted for stored in all_.values()))

    def contexts_of(self, subject: str) -> list[str]:
        """Return the contexts, other than the default one, that have a subject of this name, sorted."""
        found = filter(None, map(QUALIFIED.fullmatch, self.subjects()))
        return sorted(each["context"] for each in found if each["name"] == subject)

    def _whole(self, stored: _Stored) -> SchemaText:
        return SchemaText(stored.type, stored.text, tuple(self._referred(stored).items()))

    def _referred(self, stored: _Stored) -> dict[str, str]:
        """Return the texts of the schemas that a schema refers to, each after those that it needs, by their names."""
        found: dict[str, str] = {}
        visited: set[tuple[str, int]] = set()
        left: list[tuple[str, str, Iterator[_Reference]]] = [("", "", iter(stored.references))]
        while left:
            name, text, references = left[-1]
            for inner, subject, version in references:
                other = self._versions.get(subject, {}).get(version)
                if other is not None and (subject, version) not in visited:
                    visited.add((subject, version))
                    left.append((inner, other.text, iter(other.references)))
                    break
            else:
                left.pop()
                if left:
                    found[name] = text
        return found


def schemas_of(records: Iterable[tuple[bytes | None, bytes | None]]) -> Schemas:
    """Return the schemas that result from the records of `_schemas`, given as keys and values."""
    found = Schemas()
    for key, value in records:
        found.add(key, value)
    return found


def _object(data: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(data or b"")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _context_of(subject: str) -> str:
    found = QUALIFIED.fullmatch(subject)
    return DEFAULT_CONTEXT if found is None else found["context"]


def _plain_subject(subject: str) -> str:
    """Return a subject without the name of its context, if that is the default one."""
    found = QUALIFIED.fullmatch(subject)
    return found["name"] if found is not None and found["context"] == DEFAULT_CONTEXT else subject


def _stored(context: str, value: dict[str, Any]) -> _Stored | None:
    id_, text, kind = value.get("id"), value.get("schema"), value.get("schemaType") or DEFAULT_TYPE
    if type(id_) is not int or not isinstance(text, str) or not isinstance(kind, str):
        return None
    references = tuple(_references(context, value.get("references")))
    return _Stored(context, id_, kind, text, references, bool(value.get("deleted")))


def _references(context: str, values: object) -> Iterator[_Reference]:
    """Yield names, subjects and versions; a subject without a context is in the schema's own."""
    for each in values if isinstance(values, list) else ():
        if isinstance(each, dict):
            name, subject, version = each.get("name"), each.get("subject"), each.get("version")
            if isinstance(name, str) and isinstance(subject, str) and type(version) is int:
                is_inside = context != DEFAULT_CONTEXT and QUALIFIED.fullmatch(subject) is None
                yield name, f":{context}:{subject}" if is_inside else _plain_subject(subject), version
