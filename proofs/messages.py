"""Records of Kafka's own topics, decoded as the classes of every release wrote them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import Outcome
from proofs.stored_messages.content import STYLES
from proofs.stored_messages.writing import written
from seglog_format.codec.application_records import decode_application_record
from seglog_format.codec.protocol import encode_message
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from tools.message_definitions import RELEASES, fetch
from tools.message_fixtures import renamed, write

if TYPE_CHECKING:
    import argparse

    from seglog_format.schema.protocol import MessageDefinition

DESCRIPTION = "Decode and encode what Kafka's generated classes of every release since 2.8 write to its own topics."
KEPT_STYLE: Final = "mixed"
Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is written."""
    parser.add_argument("--releases", nargs="+", default=list(RELEASES), metavar="RELEASE", help="whose classes write")
    parser.add_argument("--rounds", type=int, default=10, help="times that every kind and version is written")
    parser.add_argument("--jars", type=Path, metavar="DIR", help="take the jars from here instead of fetching them")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write a record of each kind here, for the fixtures")


def prove(options: argparse.Namespace) -> Outcome:
    """Decode all, and encode it again."""
    jars = options.jars or fetch(options.releases)
    records, failures, kept = 0, [], []
    ambiguous: list[str] = []
    kinds: dict[str, int] = {}
    for release in options.releases:
        seeds = range(options.seed, options.seed + options.rounds)
        lines = [line for seed in seeds for line in written(jars, release, seed)]
        for line in lines:
            (ambiguous if fits_another_layout(line) else failures).extend(differences(line))
        records += len(lines)
        kinds[release] = len({(line["kind"], line["version"]) for line in lines})
        if options.keep is not None:
            kept += written(jars, release, options.seed, (KEPT_STYLE,))
    if options.keep is not None:
        write(options.keep, kept)
    facts = {"records": records, "styles": list(STYLES), "kindVersions": kinds, "ambiguous": ambiguous}
    return Outcome(facts, failures, {"kafka": f"{options.releases[0]} to {options.releases[-1]}"})


def differences(line: Json) -> list[str]:
    """Return what is decoded or encoded otherwise than the classes of its release wrote it.

    Args:
        line: as `written` yields it.
    """
    value = base64.b64decode(line["valueBytes"])
    key = base64.b64decode(line["keyBytes"]) if "keyBytes" in line else None
    found = decode_application_record(line["topic"], key, value) or {}
    fields = found.get("value", found.get("data"))
    name = f"{line['release']} {line['kind']} version {line['version']}: {line['valueBytes']}"
    if fields != renamed(line["kind"], line["value"]) or found.get("key") != line.get("key"):
        return [f"{name}: {json.dumps(found)}"]
    layout = layout_of(line, found.get("layoutOf", ""))
    again = encode_message(layout, line["version"], fields)
    return [] if value[line["prefix"] :] == again else [f"{name}: written as {again.hex()}"]


def fits_another_layout(line: Json) -> bool:
    """Return whether the newest release would write the same bytes for what is decoded, by another layout.

    Nobody can tell then which release wrote them, and Kafka's own tools of the newest release read the same.
    """
    value = base64.b64decode(line["valueBytes"])
    key = base64.b64decode(line["keyBytes"]) if "keyBytes" in line else None
    found = decode_application_record(line["topic"], key, value) or {}
    layout, fields = layout_of(line, ""), found.get("value", found.get("data"))
    is_other = bool(layout.earlier) and not found.get("layoutOf") and fields != renamed(line["kind"], line["value"])
    return is_other and encode_message(layout, line["version"], fields) == value[line["prefix"] :]


def layout_of(line: Json, until: object) -> MessageDefinition:
    """Return the layout that a record was decoded with.

    Args:
        line: the record.
        until: the last line of releases with that layout; empty for the newest.
    """
    if "keyType" in line:
        newest = COORDINATOR_TOPICS[line["topic"]][line["keyType"]].value
    else:
        newest = FRAMED_TOPICS[line["topic"]][base64.b64decode(line["valueBytes"])[1]]
    return next(each for each in (newest, *newest.earlier) if until in ("", each.releases[1]))
