"""The schemas of Schema Registry, as the records of its topic `_schemas` have them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DEFAULT_TYPE: Final = "AVRO"
"""The type of a schema whose record names none."""


class SchemaText(NamedTuple):
    """A schema, with all that it refers to.

    Attributes:
        type: ``AVRO``, ``JSON`` or ``PROTOBUF``.
        text: of the schema.
        references: names and texts of others, each after those that it needs.
    """

    type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the schema as JSON."""
        return {"type": self.type, "text": self.text, "references": [list(each) for each in self.references]}


def schema_of_json(value: dict[str, Any]) -> SchemaText:
    """Return the schema that `SchemaText.as_json` has made."""
    return SchemaText(value["type"], value["text"], tuple((name, text) for name, text in value["references"]))


class _Stored(NamedTuple):
    id: int
    type: str
    text: str
    references: tuple[tuple[str, str, int], ...]
    is_deleted: bool


@dataclass(slots=True)
class Schemas:
    """The schemas of a registry, from the records of its topic in their order."""

    _versions: dict[tuple[str, int], _Stored] = field(default_factory=dict)
    _by_id: dict[int, _Stored] = field(default_factory=dict)

    def add(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record. What is not a schema, such as the registry's own settings, changes nothing."""
        name = _object(key)
        if name.get("keytype") != "SCHEMA" or not isinstance(name.get("subject"), str):
            return
        version = name.get("version")
        if type(version) is not int:
            return
        if value is None:
            self._versions.pop((name["subject"], version), None)  # values by its id may still be there
            return
        stored = _stored(_object(value))
        if stored is not None:
            self._versions[name["subject"], version] = stored
            self._by_id[stored.id] = stored

    def by_id(self, id_: int) -> SchemaText | None:
        """Return the schema with an id; None if there is none. Schemas that were deleted are among them."""
        stored = self._by_id.get(id_)
        return None if stored is None else self._whole(stored)

    def latest(self, subject: str) -> SchemaText | None:
        """Return the newest schema of a subject that was not deleted; None if there is none."""
        versions = [
            version for (name, version), stored in self._versions.items() if name == subject and not stored.is_deleted
        ]
        return self._whole(self._versions[subject, max(versions)]) if versions else None

    def subjects(self) -> list[str]:
        """Return the names of all subjects, sorted."""
        return sorted({subject for subject, _ in self._versions})

    def _whole(self, stored: _Stored) -> SchemaText:
        found: dict[str, str] = {}
        self._gather(stored, found, set())
        return SchemaText(stored.type, stored.text, tuple(found.items()))

    def _gather(self, stored: _Stored, found: dict[str, str], visited: set[tuple[str, int]]) -> None:
        """Add what a schema refers to, what is needed first; circles end where they begin."""
        for name, subject, version in stored.references:
            other = self._versions.get((subject, version))
            if other is not None and (subject, version) not in visited:
                visited.add((subject, version))
                self._gather(other, found, visited)
                found[name] = other.text


def schemas_of(records: Iterable[tuple[bytes | None, bytes | None]]) -> Schemas:
    """Return the schemas that the records of `_schemas` leave, from their keys and values."""
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


def _stored(value: dict[str, Any]) -> _Stored | None:
    id_, text, kind = value.get("id"), value.get("schema"), value.get("schemaType") or DEFAULT_TYPE
    if type(id_) is not int or not isinstance(text, str) or not isinstance(kind, str):
        return None
    return _Stored(id_, kind, text, tuple(_references(value.get("references"))), bool(value.get("deleted")))


def _references(values: object) -> Iterator[tuple[str, str, int]]:
    for each in values if isinstance(values, list) else ():
        if isinstance(each, dict):
            name, subject, version = each.get("name"), each.get("subject"), each.get("version")
            if isinstance(name, str) and isinstance(subject, str) and type(version) is int:
                yield name, subject, version
