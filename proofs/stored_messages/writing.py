"""Records of Kafka's own topics, as the classes of one release write them."""

from __future__ import annotations

import base64
import os
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_conformance.toolchains import child_processes

from proofs.stored_messages.content import STYLES, Content
from tools.message_definitions import RELEASES, artifacts_of, definitions, line_of, span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PROGRAM: Final = Path(__file__).with_name("WriteMessages.java")
OWN_TABLES: Final = (
    *("consumer_offsets", "share_group_state", "transaction_state"),
    *("remote_log_metadata", "cluster_metadata"),
)
TOPICS: Final = {table: f"__{table}" for table in OWN_TABLES}
"""Topics by the tables of their messages."""
EARLY_ACCESS: Final = line_of(RELEASES[0])
"""The line of releases whose metadata records have a frame of version 0."""
CLASS: Final = re.compile(r"(?:org/apache/kafka/common/(?:message|metadata)|[\w/]+/generated)/(\w+)\.class")
Definition = dict[str, Any]
Json = dict[str, Any]


class Kind(NamedTuple):
    """A kind of record in one release.

    Attributes:
        topic: topic that stores it.
        value: definition of its value.
        key: definition of its key; None if records have no key.
    """

    topic: str
    value: Definition
    key: Definition | None


class Drawn(NamedTuple):
    """A message to be written."""

    definition: Definition
    version: int
    content: Content
    fields: Json


def kinds(jars: Path, release: str) -> list[Kind]:
    """Return all kinds of records that a release stores in topics of its own."""
    found = {definition["name"]: (table, definition) for table, definition in definitions(jars, release)}
    return [
        Kind(TOPICS[table], definition, _key_of(found, name))
        for name, (table, definition) in found.items()
        if table in TOPICS and not name.endswith("Key")
    ]


def _key_of(found: dict[str, tuple[str, Definition]], name: str) -> Definition | None:
    if not name.endswith("Value"):
        return None
    return found[f"{name.removesuffix('Value')}Key"][1]


def versions(definition: Definition) -> range:
    """Return the versions of a message."""
    first, last = span(definition["validVersions"])
    return range(first, last + 1)


def written(jars: Path, release: str, seed: int, styles: Sequence[str] = STYLES) -> Iterator[Json]:
    """Yield records that the classes of a release wrote, of every kind and version.

    Args:
        jars: directory with the jars of the release.
        release: such as ``4.4.0``.
        seed: seed of the random values.
        styles: shares of filled fields; each gives one record.

    Yields:
        Lines with ``release``, ``topic``, ``kind``, ``version``, ``keyType``, bytes of key and value in Base64, what
        was put into both, and ``prefix``: the bytes of the value before its message.
    """
    drawn: list[tuple[Kind, Drawn, Drawn | None]] = []
    for kind in kinds(jars, release):
        for version in versions(kind.value):
            for style in styles:
                origin = f"{seed} {release} {kind.value['name']} {version} {style}"
                key = None if kind.key is None else _drawn(kind.key, versions(kind.key)[0], style, f"{origin} key")
                drawn.append((kind, _drawn(kind.value, version, style, origin), key))
    messages = [each for _, value, key in drawn for each in (value, key) if each is not None]
    answers = iter(_written_by_java(jars, release, messages))
    for kind, value, key in drawn:
        yield _line(release, kind, value, next(answers), key, b"" if key is None else next(answers))


def _drawn(definition: Definition, version: int, style: str, seed: str) -> Drawn:
    content = Content(definition, version, style, seed)
    return Drawn(definition, version, content, content.fields())


def _written_by_java(jars: Path, release: str, messages: Iterable[Drawn]) -> Iterator[bytes]:
    """Yield the bytes of messages, as the classes of a release write them."""
    paths = [jars / f"{artifact}-{release}.jar" for artifact in artifacts_of(release)]
    names = class_names(paths)
    lines = "".join(
        f"{names[each.definition['name']]} {each.version} {each.content.words(each.fields)}\n" for each in messages
    )
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, paths)), str(PROGRAM)]
    answer = child_processes.run(
        command,
        directory=child_processes.NOWHERE,
        input=lines,
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
    ).stdout
    return map(base64.b64decode, answer.splitlines())


def class_names(paths: Iterable[Path]) -> dict[str, str]:
    """Return the generated classes in jars, by the name of their message."""
    found = {}
    for path in paths:
        with zipfile.ZipFile(path) as jar:
            matches = filter(None, map(CLASS.fullmatch, jar.namelist()))
            found |= {match[1]: match[0].removesuffix(".class").replace("/", ".") for match in matches}
    return found


def _line(release: str, kind: Kind, value: Drawn, stored: bytes, key: Drawn | None, stored_key: bytes) -> Json:
    line: Json = {"release": release, "topic": kind.topic, "kind": kind.value["name"], "version": value.version}
    if kind.key is None or key is None:
        frame = 0 if line_of(release) == EARLY_ACCESS else 1
        prefix = bytes([frame, kind.value["apiKey"], value.version])
    else:
        line["keyType"] = key_type(kind.key)
        line["keyBytes"] = _text(line["keyType"].to_bytes(2, "big") + stored_key)
        line["key"] = key.content.stored(key.fields)
        prefix = value.version.to_bytes(2, "big")
    line |= {"valueBytes": _text(prefix + stored), "prefix": len(prefix)}
    return line | {"value": value.content.stored(value.fields)}


def key_type(definition: Definition) -> int:
    """Return the number that a key begins with: before 4.1 it was the first version of the key's message."""
    return int(definition.get("apiKey", span(definition["validVersions"])[0]))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
