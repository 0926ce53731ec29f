"""Tables of the messages in Kafka's own topics: every field, with the versions of the message that have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from construct import Array, FormatField, Renamed, Struct, Subconstruct

from seglog_format.schema.coordinator_records import CODES, COORDINATOR_TOPICS
from seglog_format.schema.fields import FORMAT_TYPES, Checked, type_name
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import TAGGED_FIELDS, MessageDefinition, declaration
from tools.docs.message_coverage import coverage, sentence_of_releases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from construct import Construct

SPOKEN: Final = {"flag": "bool", "doublebe": "float64"}


def tables(module: str) -> Iterator[str]:
    """Yield sections for the page of a schema module; nothing for modules without messages.

    Args:
        module: stem of the module.
    """
    if module == "coordinator_records":
        yield f"\n{coverage().sentence()} {sentence_of_releases()}\n"
        for topic, records in COORDINATOR_TOPICS.items():
            for record in dict.fromkeys(records.values()):
                numbers = " or ".join(str(number) for number, one in sorted(records.items()) if one is record)
                yield f"\n## {record.type}\n"
                yield f"In `{topic}`, where the key starts with {numbers}. Behind the version of the key:\n"
                yield fields_table(record.key)
                yield "\nBehind the version of the value:\n"
                yield fields_table(record.value)
                yield from (_codes(path, names) for path, names in CODES.get(record.type, {}).items())
    if module == "metadata_records":
        yield f"\n{coverage().sentence()} {sentence_of_releases()}\n"
        for topic, definitions in FRAMED_TOPICS.items():
            for number, definition in sorted(definitions.items()):
                yield f"\n## {definition.name}\n"
                yield f"Type {number} in `{topic}`{_until(definition)}.\n"
                yield fields_table(definition)


def _codes(path: str, names: dict[int, str]) -> str:
    return f"\n`{path}` is " + ", ".join(f"{number} {name}" for number, name in names.items()) + "."


def _until(definition: MessageDefinition) -> str:
    last = definition.releases[1]
    return f", up to the releases {last}" if last else ""


def fields_table(definition: MessageDefinition) -> str:
    """Return a table of the fields of a message, with the versions that have each.

    Args:
        definition: the message.
    """
    latest = definition.latest
    found: dict[str, tuple[str, list[int]]] = {}
    order: list[str] = []
    for version in reversed(range(latest + 1)):
        before = 0
        for path, kind in _rows(declaration(definition, version), ""):
            if path not in found:
                order.insert(before, path)
            found.setdefault(path, (kind, []))[1].insert(0, version)
            before = order.index(path) + 1
    if not found:
        return "No fields."
    rows = ["| field | type | versions |", "|---|---|---|"]
    rows += [f"| `{path}` | {found[path][0]} | {_versions(found[path][1], latest)} |" for path in order]
    return "\n".join([*rows, *_flexible(definition, latest)])


def _flexible(definition: MessageDefinition, latest: int) -> Iterator[str]:
    since = definition.flexible_since
    if since is not None and since <= latest:
        when = f" from version {since} on" if since else ""
        yield f"\nLengths are compact{when}, and tagged fields end each structure."


def _versions(there: list[int], latest: int) -> str:
    if there[-1] < latest:
        return f"{there[0]} to {there[-1]}" if len(there) > 1 else str(there[0])
    return "all" if there[0] == 0 else f"{there[0]} and later"


def _rows(declared: Struct, prefix: str) -> Iterator[tuple[str, str]]:
    for field in declared.subcons:
        if field.name == TAGGED_FIELDS:
            for tag, known in sorted(_plain(field).known.items()):
                yield from _field(known, prefix, f", tag {tag}")
        else:
            yield from _field(field, prefix, "")


def _field(field: Construct, prefix: str, more: str) -> Iterator[tuple[str, str]]:
    path, plain = f"{prefix}{field.name}", _plain(field)
    inside = _plain(plain.subcon) if isinstance(plain, Subconstruct) and not isinstance(plain, Struct) else plain
    if isinstance(plain, Array):
        words = "structures" if isinstance(inside, Struct) else _kind(inside)
        yield path, f"array of {words}{_null(field)}{more}"
        yield from _rows(inside, f"{path}[].") if isinstance(inside, Struct) else ()
    elif isinstance(inside, Struct):
        yield path, ("structure" if inside is plain else "structure, nullable") + more
        yield from _rows(inside, f"{path}.")
    else:
        yield path, _kind(plain) + (_null(field) if _kind(plain) in {"string", "bytes"} else "") + more


def _null(field: Construct) -> str:
    """Return whether the value may be null, in words; the declaration checks fields that must not be null."""
    while isinstance(field, Renamed):
        if isinstance(field, Checked):
            return ""
        field = field.subcon
    return ", nullable"


def _plain(field: Construct) -> Construct:
    while isinstance(field, Renamed):
        field = field.subcon
    return field


def _kind(plain: Construct) -> str:
    if isinstance(plain, FormatField) and plain.fmtstr[-1].lower() not in FORMAT_TYPES:
        return "bool" if plain.fmtstr[-1] == "?" else "float64"
    return SPOKEN.get(type_name(plain), type_name(plain))
