"""Definitions of messages as flat facts, by the path of each field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tools.kafka_next.jars import entries, own
from tools.message_definitions import COMMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

WIRE: Final = frozenset({"request", "response"})
"""Types of messages that are sent, and never stored."""
NO_FACTS: Final = frozenset({"about", "name", "fields", "commonStructs"})
Json = dict[str, Any]
Facts = dict[str, str]
Messages = dict[str, dict[str, Facts]]
"""Facts by message and by path; the path of the message itself is empty."""


def read(jars: Path, release: str) -> tuple[Messages, Messages]:
    """Return the messages that a release stores, and the messages that it sends."""
    stored: Messages = {}
    sent: Messages = {}
    for jar in own(jars, release):
        for name, data in entries(jar, ".json"):
            if "message/" in name or "metadata/" in name:
                definition = json.loads(COMMENT.sub(lambda match: match[1] or "", data.decode("utf-8")))
                into = sent if definition["type"] in WIRE else stored
                into[definition["name"]] = flat(definition)
    return stored, sent


def flat(definition: Json) -> dict[str, Facts]:
    """Return the facts of a definition, without its texts.

    Args:
        definition: the content of its file.
    """
    shared = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    return {"": _facts(definition), **dict(_fields(definition.get("fields", ()), shared, ""))}


def _fields(fields: Sequence[Json], shared: Mapping[str, Sequence[Json]], above: str) -> Iterator[tuple[str, Facts]]:
    for field in fields:
        path = f"{above}{field['name'][0].lower()}{field['name'][1:]}"
        yield path, _facts(field)
        inside = field.get("fields") or shared.get(field["type"].removeprefix("[]"), ())
        yield from _fields(inside, shared, f"{path}.")


def _facts(each: Json) -> Facts:
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in each.items()
        if name not in NO_FACTS
    }
