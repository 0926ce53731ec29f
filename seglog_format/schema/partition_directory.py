"""Names of partition directories and of the files in them, as brokers write them (chapter 10).

`seglog_format.names` accepts more names: those that brokers of all versions accept. Both are tested against each other.
"""

import re

from construct import Struct

from seglog_format.names import (
    EPOCH_DIGITS,
    NUMBERED_KINDS,
    OFFSET_DIGITS,
    STATES,
    FileKind,
    is_legal_topic,
    is_usual_unique,
    parse_decimal,
)
from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.text import Decimal, Matched, fits


def _one_of(texts: tuple[str, ...]) -> bytes:
    return "|".join(re.escape(text) for text in texts).encode()


_KINDS = tuple(kind.value for kind in NUMBERED_KINDS)
_SUFFIXES = ("", ".deleted", ".cleaned", ".swap")
_SNAPSHOT_SUFFIXES = ("", ".deleted", ".part")

Offset = Matched(re.compile(rb"(\d{%d})(?!\d)" % OFFSET_DIGITS), f"{OFFSET_DIGITS} digits")
Epoch = Matched(re.compile(rb"-(\d{%d})(?!\d)" % EPOCH_DIGITS), f"'-' and {EPOCH_DIGITS} digits")
Kind = Matched(re.compile(b"(" + _one_of(_KINDS) + rb")(?![^.])"), "suffix")
Snapshot = Matched(re.compile(b"(" + re.escape(FileKind.METADATA_SNAPSHOT.value.encode()) + rb")(?![^.])"), "suffix")
Rest = Matched(re.compile(rb"(?s)(.*)"), "suffix")

# The topic ends at the last dash before the partition; the unique part of a renamed directory follows the partition.
_STATES = _one_of(STATES)
Topic = Matched(re.compile(rb"(?s)(.+)(?=-\d+(?:\.[^.]+-(?:" + _STATES + rb"))?\Z)"), "text")
Partition = Matched(re.compile(rb"-(0|[1-9]\d*)(?!\d)"), "'-' and digits")
Unique = Matched(re.compile(rb"\.([^.]+)(?=-(?:" + _STATES + rb")\Z)"), "'.' and text")
State = Matched(re.compile(rb"-(" + _STATES + rb")\Z"), "'-' and word")


def _is_offset(text: str) -> bool:
    return parse_decimal(text, bits=64) is not None


def _is_unique_or_nothing(text: str) -> bool:
    return not text or is_usual_unique(text)


SegmentFileName = Struct(
    "base_offset"
    / Decimal(Checked(Checked(Offset, bool, "20 digits", "SEG-PDR-005"), _is_offset, "an offset", "SEG-PDR-007"), 64)
    * Doc("Lower bound of every offset in the segment.", "SEG-PDR-005", "SEG-PDR-006", "SEG-PDR-007"),
    "kind"
    / Checked(Kind, bool, " ".join(_KINDS), "SEG-PDR-005")
    * Doc("Which file of the segment it is.", "SEG-PDR-005", "SEG-PDR-008"),
    "suffix"
    / Checked(Rest, _SUFFIXES.__contains__, "nothing, .deleted, .cleaned or .swap", "SEG-PDR-005")
    * Doc("Nothing, or what is happening to the file.", "SEG-PDR-009", "SEG-PDR-010", since="0.8.1"),
)

MetadataSnapshotFileName = Struct(
    "end_offset"
    / Decimal(Checked(Checked(Offset, bool, "20 digits", "SEG-PDR-015"), _is_offset, "an offset", "SEG-PDR-007"), 64)
    * Doc("First offset that the snapshot does not cover.", "SEG-PDR-015", since="3.0.0"),
    "epoch"
    / Decimal(Checked(Epoch, fits(32), "'-' and 10 digits", "SEG-PDR-015"), 32)
    * Doc("Leader epoch of the last record it covers.", "SEG-PDR-015", since="3.0.0"),
    "kind"
    / Checked(Snapshot, bool, ".checkpoint", "SEG-PDR-015")
    * Doc("`.checkpoint`.", "SEG-PDR-015", since="3.0.0"),
    "suffix"
    / Checked(Rest, _SNAPSHOT_SUFFIXES.__contains__, "nothing, .deleted or .part", "SEG-PDR-015")
    * Doc("Nothing, or what is happening to the file.", "SEG-PDR-009", since="3.0.0"),
)

PartitionDirectoryName = Struct(
    "topic"
    / Checked(Topic, is_legal_topic, "1 to 249 of a-z A-Z 0-9 . _ -, not . or ..", "SEG-PDR-002")
    * Doc("Everything before the last dash.", "SEG-PDR-001", "SEG-PDR-002"),
    "partition"
    / Decimal(Checked(Partition, fits(32), "'-' and a partition", "SEG-PDR-001"), 32)
    * Doc("Decimal, without leading zeros.", "SEG-PDR-001", "SEG-PDR-017"),
    "unique"
    / Checked(Unique, _is_unique_or_nothing, "32 lower-case hexadecimal digits", "SEG-PDR-004")
    * Doc("In a renamed directory: a random UUID without its dashes.", "SEG-PDR-004", "SEG-PDR-003", since="0.10.2"),
    "state" / State * Doc("In a renamed directory: why.", "SEG-PDR-003", since="0.10.2"),
)
