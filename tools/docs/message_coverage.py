"""Numbers of decoded kinds of messages, of those that the newest release stores, counted in messages that it wrote."""

from __future__ import annotations

import base64
import struct
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format import ControlRecordType
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.codec.protocol import decode_message
from seglog_format.errors import FormatError, Location
from seglog_format.schema.control_record import KRAFT_VALUES
from seglog_format.schema.coordinator_records import CONSUMER_PROTOCOL, COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import message, rows
from tools.message_fixtures import RELEASE, read, renamed

if TYPE_CHECKING:
    from collections.abc import Iterable

MESSAGES: Final = Path(__file__).resolve().parents[2] / "fixtures" / "messages"
KINDS: Final = MESSAGES / "kinds.jsonl.gz"
OF_RELEASES: Final = MESSAGES / "releases.jsonl.gz"
AT: Final = Location()
MARKER: Final = "EndTxnMarker"
VERSION: Final = "version"
Line = dict[str, Any]


class Coverage(NamedTuple):
    """Numbers of kinds, and of kinds with their versions.

    Attributes:
        kinds: kinds that are decoded in every version.
        all_kinds: kinds that the release stores.
        versions: versions that are decoded.
        all_versions: versions that the release stores.
    """

    kinds: int
    all_kinds: int
    versions: int
    all_versions: int

    def sentence(self) -> str:
        """Return a sentence with the numbers."""
        return (
            f"Of the {self.all_kinds} kinds of messages ({self.all_versions} with their versions) that Kafka {RELEASE} "
            f"stores, {self.kinds} ({self.versions}) are decoded."
        )


@cache
def coverage() -> Coverage:
    """Return the coverage of the messages in the fixtures."""
    return counted(read(KINDS))


def counted(lines: Iterable[Line]) -> Coverage:
    """Return the coverage of messages, each with its JSON as Kafka's classes print it."""
    decoded: dict[tuple[str, int], bool] = {}
    for line in lines:
        kind = line["kind"], line["version"]
        decoded[kind] = decoded.get(kind, True) and is_decoded(line)
    kinds = {name for name, _ in decoded}
    missing = {name for (name, _), found in decoded.items() if not found}
    return Coverage(len(kinds - missing), len(kinds), sum(decoded.values()), len(decoded))


@cache
def sentence_of_releases() -> str:
    """Return a sentence with the numbers of decoded kinds and versions, of those that each release wrote."""
    lines = list(read(OF_RELEASES))
    releases = list(dict.fromkeys(line["release"] for line in lines))
    decoded = sum(map(is_decoded_of_release, lines))
    return (
        f"The classes of {len(releases)} releases, {releases[0]} to {releases[-1]}, wrote a record of every kind and "
        f"version that each stores in topics of its own: of {len(lines)} records, {decoded} are decoded."
    )


def is_decoded_of_release(line: Line) -> bool:
    """Return whether our decoders return the content that the classes of a release wrote into a record."""
    key = base64.b64decode(line["keyBytes"]) if "keyBytes" in line else None
    found = decode_application_record(line["topic"], key, base64.b64decode(line["valueBytes"])) or {}
    right = renamed(line["kind"], line["value"])
    return found.get("value", found.get("data")) == right and found.get("key") == line.get("key")


def is_decoded(line: Line) -> bool:
    """Return whether our decoders return the content that Kafka's converters print."""
    data = base64.b64decode(line["valueBytes"])
    try:
        return _decoded(line, data) == line["value"]
    except (FormatError, KeyError, ValueError):
        return False


def _decoded(line: Line, data: bytes) -> object:
    topic, kind, version = line["where"], line["kind"], line["version"]
    if topic in COORDINATOR_TOPICS:
        return (decode_application_record(topic, base64.b64decode(line["keyBytes"]), data) or {}).get("value")
    if topic in FRAMED_TOPICS:
        return (decode_application_record(topic, None, data) or {}).get("data")
    if topic.startswith("control"):
        return _control_fields(line, data)
    if kind in CONSUMER_PROTOCOL:
        return decode_message(CONSUMER_PROTOCOL[kind], version, data[2:], AT)
    tables = {row["name"]: row for row in rows("side_files")}
    body = data if kind == "ProducerSnapshot" else data[2:]
    return decode_message(message(kind, tables[kind], broker="0.11.0"), version, body, AT)


def _control_fields(line: Line, data: bytes) -> dict[str, object]:
    """Return fields of a control record's value; the random version in a KRaft value is corrected first."""
    kind, version = line["kind"], line["version"]
    if kind == MARKER:
        fields = decode_control_record(_control_key(ControlRecordType.COMMIT), data, AT).fields
        return {name: found for name, found in fields.items() if name != VERSION}
    (number,) = (number for number, each in KRAFT_VALUES.items() if each.name == kind)
    right = struct.pack(">h", version) + data[2:]
    return decode_control_record(_control_key(number), right, AT).fields | {VERSION: line["value"][VERSION]}


def _control_key(number: int) -> bytes:
    return struct.pack(">hh", 0, number)
