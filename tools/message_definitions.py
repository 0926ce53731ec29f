"""Field tables of the messages that Kafka stores, derived from the definitions inside its published jars.

Maven fetches the jars of each release into ``build/definitions``. From the definitions only facts are taken: names,
types, versions, tags, defaults. They go to ``seglog_format/schema/messages/*.json``, from which declarations are made.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REPOSITORY: Final = Path(__file__).resolve().parent.parent
WORK: Final = REPOSITORY / "build" / "definitions"
TABLES: Final = REPOSITORY / "seglog_format" / "schema" / "messages"

RELEASES: Final = (
    *("2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
    *("4.0.1", "4.1.1", "4.2.0", "4.3.0", "4.4.0"),
)
"""The last release of each line so far; 2.8 is the first whose jars hold definitions of stored messages."""
ARTIFACTS: Final = {
    "kafka-clients": ("2.8", ""),
    "kafka-metadata": ("2.8", ""),
    "kafka_2.13": ("2.8", "4.0"),
    "kafka-storage": ("3.0", ""),
    "kafka-group-coordinator": ("3.5", ""),
    "kafka-transaction-coordinator": ("3.8", ""),
    "kafka-share-coordinator": ("4.0", ""),
}
"""Jars with definitions, from one line of releases to another."""

TABLES_OF_MESSAGES: Final = {
    "ShareSnapshot": "share_group_state",
    "ShareUpdate": "share_group_state",
    "TransactionLog": "transaction_state",
    "AbortedTxn": "side_files",
    "ProducerSnapshot": "side_files",
    "ConsumerProtocolAssignment": "consumer_protocol",
    "ConsumerProtocolSubscription": "consumer_protocol",
    "EndTxnMarker": "control_records",
    "KRaftVersionRecord": "control_records",
    "LeaderChangeMessage": "control_records",
    "SnapshotFooterRecord": "control_records",
    "SnapshotHeaderRecord": "control_records",
    "VotersRecord": "control_records",
}
"""Tables of the messages whose table does not follow from their type or jar."""
TABLE_NAMES: Final = (
    *("consumer_offsets", "share_group_state", "transaction_state", "remote_log_metadata", "cluster_metadata"),
    *("control_records", "consumer_protocol", "side_files"),
)

COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*')
Definition = dict[str, Any]
Layout = dict[str, Any]


def line_of(release: str) -> str:
    """Return the line of a release: ``4.3`` for ``4.3.0``."""
    return release.rpartition(".")[0]


def order(release: str) -> tuple[int, ...]:
    """Return the sort key of a release or of a line of releases."""
    return tuple(map(int, release.split(".")))


# The jars


def fetch(releases: Sequence[str]) -> Path:
    """Copy the jars of some releases with Maven.

    Returns:
        The directory with the jars.
    """
    items = "".join(
        f"<artifactItem><groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{release}</version></artifactItem>"
        for release in releases
        for artifact in artifacts_of(release)
    )
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "pom.xml").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>seglog</groupId><artifactId>definitions</artifactId>"
        "<version>1</version><packaging>pom</packaging><build><plugins><plugin>"
        "<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId>"
        "<version>3.8.1</version><configuration><outputDirectory>${project.basedir}/jars</outputDirectory>"
        f"<artifactItems>{items}</artifactItems></configuration></plugin></plugins></build></project>",
        encoding="utf-8",
    )
    command = ["mvn", "-q", "-B", "dependency:copy"]
    child_processes.run(command, directory=WORK, check=True)
    return WORK / "jars"


def artifacts_of(release: str) -> list[str]:
    """Return the jars of a release that hold definitions."""
    line = order(line_of(release))
    return [
        artifact
        for artifact, (first, last) in ARTIFACTS.items()
        if order(first) <= line and (not last or line <= order(last))
    ]


def definitions(jars: Path, release: str) -> Iterator[tuple[str, Definition]]:
    """Yield the definitions of stored messages in a release's jars, each with its table."""
    for artifact in artifacts_of(release):
        with zipfile.ZipFile(jars / f"{artifact}-{release}.jar") as jar:
            for name in sorted(jar.namelist()):
                if name.endswith(".json") and ("message/" in name or "metadata/" in name):
                    text = jar.read(name).decode("utf-8")
                    if '"type": "request"' in text or '"type": "response"' in text:
                        continue
                    found = json.loads(COMMENT.sub(lambda match: match[1] or "", text))
                    if table := _table_of(artifact, found):
                        yield table, found


def _table_of(artifact: str, definition: Definition) -> str | None:
    name = definition["name"]
    known = TABLES_OF_MESSAGES.get(re.sub("(Key|Value)$", "", name))
    if known:
        return known
    if artifact == "kafka-metadata":
        return "cluster_metadata"
    if definition["type"] == "metadata":
        return "remote_log_metadata"
    return "consumer_offsets" if name.endswith(("Key", "Value")) else None


# Facts


def layout(definition: Definition) -> Layout:
    """Return the facts of a definition that determine the bytes of its message."""
    is_key = definition["name"].endswith("Key")
    number = definition.get("apiKey", definition["validVersions"].partition("-")[0] if is_key else None)
    shared = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    found: Layout = {} if number is None else {"type": int(number)}
    found["versions"] = "0" if is_key else definition["validVersions"]
    flexible = definition.get("flexibleVersions", "none")
    if flexible != "none":
        found["flexible"] = flexible
    return found | {"fields": [_field(each, shared, is_key=is_key) for each in definition["fields"]]}


def _field(field: Definition, shared: Mapping[str, list[Definition]], *, is_key: bool) -> Layout:
    word = field["type"].removeprefix("[]")
    inside = field.get("fields") or shared.get(word)
    prefix = "[]" if field["type"].startswith("[]") else ""
    found: Layout = {"name": field["name"][0].lower() + field["name"][1:]}
    found["type"] = prefix + ("struct" if inside else word)
    versions = "0+" if is_key else field.get("versions", field.get("taggedVersions"))
    if versions != "0+":
        found["versions"] = versions
    if field.get("nullableVersions", "none") != "none":
        found["nullable"] = True
        assert field["nullableVersions"] == versions, f"{field['name']} was not always nullable"
    if "tag" in field:
        found["tag"] = int(field["tag"])
        assert field["taggedVersions"] == versions, f"{field['name']} was not always tagged"
    if field.get("default") is not None:
        found["default"] = str(field["default"]).removesuffix(".0")
    return found | ({"fields": [_field(each, shared, is_key=is_key) for each in inside]} if inside else {})


def stored(each: Layout, version: int) -> list[Any]:
    """Return the layout of one version, without tagged fields: a reader skips those that it does not know."""
    return [_is_in(each.get("flexible", "none"), version), *_stored(each["fields"], version)]


def _stored(fields: list[Layout], version: int) -> list[Any]:
    return [
        [field["name"], field["type"], field.get("nullable", False), _stored(field.get("fields", []), version)]
        for field in fields
        if "tag" not in field and _is_in(field.get("versions", "0+"), version)
    ]


def _is_in(versions: str, version: int) -> bool:
    first, last = span(versions)
    return first <= version <= last


def span(versions: str) -> tuple[int, int]:
    """Return first and last version of a range such as ``3``, ``0-4``, ``2+`` or ``none``."""
    if versions == "none":
        return 1, 0
    first, _, last = versions.removesuffix("+").partition("-")
    return int(first), 2**15 if versions.endswith("+") else int(last or first)


def messages_of(found: Mapping[str, Mapping[str, Definition]]) -> list[Layout]:
    """Return the messages of a table: the layout of each in the newest release, and earlier layouts that differ.

    Args:
        found: definitions by name and release.
    """
    messages = {name: _message(name, by_release) for name, by_release in found.items()}
    for name, message in messages.items():
        if "type" not in message and name.endswith("Value"):  # before 4.1 only the key has the type
            message["type"] = messages[f"{name.removesuffix('Value')}Key"]["type"]
    return sorted(messages.values(), key=lambda message: (message.get("type", 0), message["name"]))


def _message(name: str, by_release: Mapping[str, Definition]) -> Layout:
    releases = sorted(by_release, key=order)
    layouts: list[tuple[list[str], Layout]] = []
    for release in reversed(releases):
        each = layout(by_release[release])
        if layouts and not _differs(each, layouts[-1][1]):
            layouts[-1][0].insert(0, release)
        else:
            layouts.append(([release], each))
    (_, newest), *others = layouts
    message: Layout = {"name": name, "since": line_of(releases[0])}
    if releases[-1] != RELEASES[-1]:
        message["until"] = line_of(releases[-1])
    earlier = [_earlier(lines, each) for lines, each in others]
    return message | newest | ({"earlier": earlier} if earlier else {})


def _earlier(releases: list[str], each: Layout) -> Layout:
    known = {name: value for name, value in each.items() if name != "type"}
    return {"since": line_of(releases[0]), "until": line_of(releases[-1])} | known


def _differs(older: Layout, newer: Layout) -> bool:
    first, last = span(older["versions"])
    return any(stored(older, version) != stored(newer, version) for version in range(first, last + 1))


# Files


def document(table: str, messages: list[Layout]) -> str:
    """Return the text of a table: a line for each field."""
    rows = ",\n".join(_text(message, " ") for message in messages)
    return f'{{"table": "{table}", "release": "{RELEASES[-1]}", "messages": [\n{rows}\n]}}\n'


def _text(each: Layout, indent: str) -> str:
    plain = {name: value for name, value in each.items() if name not in {"fields", "earlier"}}
    text = indent + json.dumps(plain)[:-1]
    for name in ("fields", "earlier"):
        if name in each:
            inside = ",\n".join(_text(one, indent + "  ") for one in each[name])
            text += f',\n{indent} "{name}": [' + (f"\n{inside}]" if inside else "]")
    return text + "}"


def derive(jars: Path) -> dict[str, str]:
    """Return the texts of all tables, by file name."""
    found: dict[str, dict[str, dict[str, Definition]]] = {table: {} for table in TABLE_NAMES}
    for release in RELEASES:
        for table, definition in definitions(jars, release):
            found[table].setdefault(definition["name"], {})[release] = definition
    return {f"{table}.json": document(table, messages_of(found[table])) for table in TABLE_NAMES}


def main() -> int:
    """Write the tables, or compare them; the exit status is 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="say which tables would change, and change none")
    parser.add_argument("--jars", type=Path, help="take them from this directory instead of fetching them")
    given = parser.parse_args()
    texts = derive(given.jars or fetch(RELEASES))
    changed = [name for name, text in texts.items() if _read(TABLES / name) != text]
    for name in changed:
        print(f"{name}: {'differs' if given.check else 'written'}")
        if not given.check:
            TABLES.mkdir(exist_ok=True)
            (TABLES / name).write_text(texts[name], encoding="utf-8")
    return int(given.check and bool(changed))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
