"""Messages whose fields come from Kafka's own definitions, stored as tables in ``messages/``.

`tools/message_definitions.py` derives the tables from the jars of each release. The caller of `message` adds what the
tables do not contain: requirement ids, one sentence for a field, conditions on a value.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.schema.protocol import SIMPLE_TYPES, ArrayOf, Field, MessageDefinition, Structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from construct import Construct

    from seglog_format.schema.protocol import FieldType

TABLES: Final = Path(__file__).with_name("messages")
NEWEST: Final = 2**15 - 1
"""Last version of a field without a last version."""
OLDEST_LINE: Final = "2.8"
"""The first release line whose jars have definitions; its fields may be older."""

_NO_DOCS: Final[Mapping[str, str]] = {}
_NO_CHECKS: Final[Mapping[str, Callable[[Construct], Construct]]] = {}


@cache
def table(name: str) -> dict[str, Any]:
    """Return a table: ``release``, the newest release that it was derived from, and ``messages``."""
    text = (TABLES / f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def rows(name: str) -> list[dict[str, Any]]:
    """Return the messages of a table."""
    found: list[dict[str, Any]] = table(name)["messages"]
    return found


def message(
    name: str,
    row: Mapping[str, Any],
    *,
    broker: str,
    requirement: str = "SEG-CTL-010",
    docs: Mapping[str, str] = _NO_DOCS,
    checks: Mapping[str, Callable[[Construct], Construct]] = _NO_CHECKS,
) -> MessageDefinition:
    """Create the definition that a row of a table describes.

    Args:
        name: of the message in output and errors.
        row: of a table.
        broker: first version that writes the message, if it is older than the definitions.
        requirement: id of the requirement that an invalid message breaks.
        docs: a sentence for a field, by its path, such as ``voters.voterId``.
        checks: of values, by the path of the field.
    """
    first, last = _span(row["versions"])
    flexible, _ = _span(row["flexible"]) if "flexible" in row else (None, None)
    since = row["since"]
    return MessageDefinition(
        name,
        tuple(_field(each, "", docs, checks) for each in row["fields"]),
        latest=last,
        flexible_since=flexible,
        requirement=requirement,
        broker=broker if since == OLDEST_LINE else f"{since}.0",
        earliest=first,
        releases=(since, row.get("until", "")),
        earlier=tuple(message(name, each, broker=broker, requirement=requirement) for each in row.get("earlier", ())),
    )


def _field(
    row: Mapping[str, Any],
    above: str,
    docs: Mapping[str, str],
    checks: Mapping[str, Callable[[Construct], Construct]],
) -> Field:
    path = above + row["name"]
    inside = tuple(_field(each, f"{path}.", docs, checks) for each in row.get("fields", ()))
    first, last = _span(row.get("versions", "0+"))
    return Field(
        row["name"],
        _type(row["type"], inside),
        docs.get(path, ""),
        since=first,
        until=None if last == NEWEST else last,
        nullable=row.get("nullable", False),
        tag=row.get("tag"),
        default=row.get("default"),
        check=checks.get(path),
    )


def _type(word: str, inside: tuple[Field, ...]) -> FieldType:
    if word.startswith("[]"):
        return ArrayOf(_type(word[2:], inside))
    return Structure(inside) if word == "struct" else SIMPLE_TYPES[word]


def _span(versions: str) -> tuple[int, int]:
    """Parse first and last version from ``3``, ``0-4`` or ``2+``."""
    first, _, last = versions.removesuffix("+").partition("-")
    return int(first), NEWEST if versions.endswith("+") else int(last or first)


def upper_snake(name: str) -> str:
    """Return ``NO_OP_RECORD`` for ``NoOpRecord``, as Kafka's tools print it."""
    return re.sub("(?<!^)(?=[A-Z])", "_", name).upper()


def lower_camel(name: str) -> str:
    """Return ``offsetCommit`` for ``OffsetCommit``."""
    return name[0].lower() + name[1:]
