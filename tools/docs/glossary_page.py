"""The glossary of the format: the terms of chapter 00 in alphabetical order, with the rules that use them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE: Final = Path(__file__).resolve().parents[2] / "spec" / "00-terms.md"
PAGE: Final = "docs/specification/glossary.md"
TABLE: Final = re.compile(r"^\| term \| meaning \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
SHOWN: Final = 5

INTRODUCTION: Final = """\
# Glossary of the format

Every term that [chapter 00](../spec/00-terms.md) explains, in alphabetical order, with the first rules whose text uses
it. *Also* lists the names that other texts, and Kafka's own code, have for the same thing. The words that this project
has for its own machinery are in [another list](../glossary.md).

| term | also | meaning | rules |
|---|---|---|---|
"""
SYNONYMS: Final = {
    "active segment": ("current segment", "open segment"),
    "base offset": ("first offset", "start offset"),
    "broker": ("server",),
    "checksum, CRC": ("CRC-32", "CRC-32C"),
    "clean shutdown": (".kafka_cleanshutdown", "controlled shutdown"),
    "closed segment": ("inactive segment", "rolled segment"),
    "codec": ("compression type", "compression.type"),
    "compaction": ("log cleaning", "log cleaner", "cleanup.policy=compact"),
    "control batch": ("marker batch",),
    "coordinator": ("group coordinator", "transaction coordinator"),
    "delete horizon": ("deleteHorizonMs", "delete.retention.ms"),
    "dirty offset": ("first dirty offset", "cleaner checkpoint"),
    "end marker": ("transaction marker", "commit marker", "abort marker", "EndTxnMarker"),
    "entry": ("batch or message", "log entry"),
    "flush": ("fsync", "force"),
    "header": ("record header",),
    "idempotent producer": ("enable.idempotence", "exactly once"),
    "in-sync replicas, ISR": ("min.insync.replicas",),
    "KRaft": ("Raft", "quorum controller", "ZooKeeper"),
    "last stable offset, LSO": ("read_committed",),
    "leader epoch": ("partitionLeaderEpoch",),
    "log": ("UnifiedLog", "topic partition log"),
    "log directory": ("log.dirs", "data directory"),
    "log end offset, LEO": ("end offset",),
    "log start offset": ("beginning offset", "earliest offset", "low watermark", "LW"),
    "magic": ("message format version", "magic byte"),
    "message": ("legacy message", "MessageSet"),
    "preallocation": ("log.preallocate",),
    "producer id, epoch, sequence": ("PID", "baseSequence"),
    "producer snapshot": ("producer state", "ProducerStateManager"),
    "record batch, batch": ("RecordBatch", "message format v2", "V2"),
    "recovery": ("log recovery", "crash recovery"),
    "retention": ("log deletion", "retention.ms", "retention.bytes"),
    "roll": ("rotate", "segment.ms", "segment.bytes"),
    "segment": ("LogSegment", "log file"),
    "tombstone": ("delete marker", "null value"),
    "transaction": ("exactly once", "transactional.id"),
    "truncation": ("truncate", "OffsetForLeaderEpoch"),
    "wrapper": ("compressed message set", "deep message"),
}
"""Other names of a term: those that readers search for."""


def terms() -> dict[str, str]:
    """Return the meaning of each term, from chapter 00; a term with a short form is given as ``term, short form``."""
    rows = [row for table in TABLE.findall(SOURCE.read_text(encoding="utf-8")) for row in table.splitlines()]
    return dict(row.strip("| ").split(" | ", 1) for row in rows)


def names_of(term: str) -> list[str]:
    """Return a term and its short forms."""
    return term.split(", ")


def anchor_of(name: str) -> str:
    """Return the anchor of a name on the page."""
    return name.lower().replace(" ", "-")


def rules_with(term: str) -> list[str]:
    """Return the ids of the rules whose text uses a term or one of its short forms, in reading order.

    Args:
        term: as chapter 00 writes it.
    """
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, names_of(term)))})(?:s|es)?\b", re.IGNORECASE)
    return [entry.id for entry in requirements().values() if used.search(entry.text)]


def pages(notice: str) -> dict[str, str]:
    """Return the page, by its path below the repository."""
    return {PAGE: notice + INTRODUCTION + "\n".join(_rows()) + "\n"}


def _rows() -> Iterator[str]:
    found = terms()
    for term in sorted(found, key=str.casefold):
        anchors = "".join(f'<a id="{anchor_of(name)}"></a>' for name in names_of(term))
        rules = rules_with(term)
        more = f" and {len(rules) - SHOWN} more" if len(rules) > SHOWN else ""
        also = ", ".join(SYNONYMS.get(term, ()))
        yield f"| {anchors}{term} | {also} | {found[term]} | {', '.join(rules[:SHOWN])}{more} |"
