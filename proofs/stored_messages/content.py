"""Content for messages, by the definitions in the jars of one release: nothing of our own tables is used."""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any, Final

from tools.message_definitions import span

if TYPE_CHECKING:
    from collections.abc import Mapping

Definition = dict[str, Any]
Json = Any

BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
UNSIGNED: Final = {"uint16": 16, "uint32": 32}
TEXTS: Final = ("", "a", "orders", "x" * 127, "\u00fc\u4e16\U0001f600", "p" * 300)
MAX_ELEMENTS: Final = 3
LEFT_OUT: Final = 0.4
"""Share of the fields in the middle style that get no content of their own."""
STYLES: Final = ("least", "mixed", "most")
"""Nulls, zeros and nothing tagged; whatever comes; nothing null, and every tagged field."""


class Content:
    """Draws the fields of one message.

    Attributes:
        style: the share of fields that are filled.
    """

    def __init__(self, definition: Definition, version: int, style: str, seed: str) -> None:
        """Begin with a definition.

        Args:
            definition: definition of a message.
            version: version of the message.
            style: one of `STYLES`.
            seed: seed of random values.
        """
        self.style = style
        self._definition = definition
        self._version = version
        self._shared: Mapping[str, list[Definition]] = {
            each["name"]: each["fields"] for each in definition.get("commonStructs", ())
        }
        self._random = random.Random(seed)

    def fields(self) -> dict[str, Json]:
        """Return a value for each field of the version."""
        return self._structure(self._definition["fields"])

    def stored(self, fields: Mapping[str, Json]) -> dict[str, Json]:
        """Return the fields that a reader finds: tagged fields with their default are not written."""
        return self._stored(self._definition["fields"], fields)

    def words(self, fields: Mapping[str, Json]) -> str:
        """Return the fields as words for ``WriteMessages.java``."""
        return " ".join(self._words_of_structure(self._definition["fields"], fields))

    def _present(self, fields: list[Definition]) -> list[Definition]:
        return [each for each in fields if is_in(each.get("versions", each.get("taggedVersions")), self._version)]

    def _structure(self, fields: list[Definition]) -> dict[str, Json]:
        return {name_of(each): self._value(each) for each in self._present(fields)}

    def _value(self, field: Definition) -> Json:
        least = self.style == "least" or (self.style == "mixed" and self._random.random() < LEFT_OUT)
        if least and "tag" in field:
            return self._default(field)
        if least and self._may_be_null(field):
            return None
        if field["type"].startswith("[]"):
            count = 0 if least else self._random.randint(1, MAX_ELEMENTS)
            return [self._one(field, field["type"][2:]) for _ in range(count)]
        return self._one(field, field["type"])

    def _may_be_null(self, field: Definition) -> bool:
        return is_in(field.get("nullableVersions", "none"), self._version)

    def _one(self, field: Definition, kind: str) -> Json:
        inside = self._inside(field, kind)
        if inside is not None:
            return self._structure(inside)
        return zero_of(kind) if self.style == "least" else drawn(kind, self._random)

    def _inside(self, field: Definition, kind: str) -> list[Definition] | None:
        found: list[Definition] | None = field.get("fields") or self._shared.get(kind)
        return found

    def _default(self, field: Definition) -> Json:
        given, kind = field.get("default"), field["type"]
        if given == "null":
            return None
        if kind.startswith("[]"):
            return []
        inside = self._inside(field, kind)
        if inside is not None:
            return {name_of(each): self._default(each) for each in self._present(inside)}
        return zero_of(kind) if given is None else parsed(kind, str(given))

    def _stored(self, fields: list[Definition], values: Mapping[str, Json]) -> dict[str, Json]:
        found = {}
        for each in self._present(fields):
            value = values[name_of(each)]
            if "tag" in each and value == self._default(each):
                continue
            found[name_of(each)] = self._stored_value(each, value)
        return found

    def _stored_value(self, field: Definition, value: Json) -> Json:
        inside = self._inside(field, field["type"].removeprefix("[]"))
        if value is None or inside is None:
            return value
        if isinstance(value, list):
            return [self._stored(inside, each) for each in value]
        return self._stored(inside, value)

    def _words_of_structure(self, fields: list[Definition], values: Mapping[str, Json]) -> list[str]:
        found = ["{", str(len(values))]
        for each in self._present(fields):
            found += [name_of(each), *self._words_of(each, each["type"], values[name_of(each)])]
        return found

    def _words_of(self, field: Definition, kind: str, value: Json) -> list[str]:
        if value is None:
            return ["~"]
        if kind.startswith("[]"):
            words = [self._words_of(field, kind[2:], each) for each in value]
            return ["[", str(len(value)), *(word for each in words for word in each)]
        inside = self._inside(field, kind)
        return [f"={word_of(kind, value)}"] if inside is None else self._words_of_structure(inside, value)


def name_of(field: Definition) -> str:
    """Return the name of a field in JSON."""
    name: str = field["name"]
    return name[0].lower() + name[1:]


def is_in(versions: str, version: int) -> bool:
    """Return whether ``2+``, ``0-3``, ``4`` or ``none`` holds a version."""
    first, last = span(versions)
    return first <= version <= last


def zero_of(kind: str) -> Json:
    """Return the value that a field without content has."""
    if kind in BITS or kind in UNSIGNED:
        return 0
    return {"bool": False, "string": "", "bytes": "", "float64": 0.0, "uuid": uuid_text(bytes(16))}[kind]


def parsed(kind: str, text: str) -> Json:
    """Return a default as definitions write it."""
    if kind == "bool":
        return text.lower() == "true"
    return text if kind == "string" else float(text) if kind == "float64" else int(text, 0)


def drawn(kind: str, source: random.Random) -> Json:
    """Return any value of a simple type, in the form of JSON."""
    if kind in BITS:
        return source.choice((source.randrange(-(1 << (BITS[kind] - 1)), 1 << (BITS[kind] - 1)), source.randrange(100)))
    if kind in UNSIGNED:
        return source.randrange(1 << UNSIGNED[kind])
    if kind == "bytes":
        return base64.b64encode(source.randbytes(source.randrange(40))).decode("ascii")
    if kind == "uuid":
        return uuid_text(source.randbytes(16))
    if kind == "string":
        return source.choice(TEXTS)
    return source.choice((False, True)) if kind == "bool" else source.random() * 1000


def uuid_text(data: bytes) -> str:
    """Return a UUID as Kafka's tools print it."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def word_of(kind: str, value: Json) -> str:
    """Return a simple value as a word for ``WriteMessages.java``."""
    if kind == "string":
        return base64.b64encode(value.encode()).decode("ascii")
    return str(value).lower() if kind == "bool" else str(value)
