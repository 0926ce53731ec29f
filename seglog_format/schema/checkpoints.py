"""Checkpoint files and partition metadata: text of lines (chapter 51)."""

import re

from construct import Construct, Struct

from seglog_format.names import parse_decimal
from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.text import (
    AfterColon,
    AtEnd,
    Decimal,
    FirstWord,
    Line,
    RestOfLine,
    UntilEnd,
    Word,
    fits,
    is_not_negative,
    is_utf8,
)

INT32 = "a decimal number of 32 bits"
INT64 = "a decimal number of 64 bits"

_TOPIC_ID = re.compile(r"topic_id:[ \t\v\f]+([A-Za-z0-9_-]{22})")
_VERSION = re.compile(r"version:[ \t\v\f]+(.+)")
_ZERO_ID = re.compile(r"A{21}[A-P]")
"""The zero id: the last of 22 characters has four bits beyond the sixteenth byte, which readers drop."""


def _number(word: Construct, bits: int) -> Decimal:
    return Decimal(Checked(word, fits(bits), INT32 if bits == 32 else INT64, "SEG-CKP-004"), bits)


def _of_three(word: Construct) -> Construct:
    return Checked(word, bool, "three fields", "SEG-CKP-003")


def _of_two(word: Construct) -> Construct:
    return Checked(word, bool, "two fields", "SEG-CKP-003")


def _is_nothing(text: str) -> bool:
    return not text


def _is_version_line(line: str) -> bool:
    match = _VERSION.fullmatch(line)
    version = parse_decimal(match[1], bits=32) if match else None
    return version is not None and version >= 0


def _is_topic_id_line(line: str) -> bool:
    match = _TOPIC_ID.fullmatch(line)
    return match is not None and not _ZERO_ID.fullmatch(match[1])


CheckpointVersion = Struct(
    "version" / AtEnd(_number(Line, 32), 0) * Doc("Version of the file: 0.", "SEG-CKP-001", "SEG-CKP-005", default="0"),
)

CheckpointHeader = Struct(
    *CheckpointVersion.subcons,
    "entry_count"
    / Checked(AtEnd(_number(Line, 32), 0), is_not_negative, "a count of 0 or more", "SEG-CKP-002")
    * Doc("Number of lines that follow.", "SEG-CKP-002", "SEG-CKP-005"),
)

OffsetCheckpointEntry = Struct(
    "topic"
    / Checked(_of_three(FirstWord), is_utf8, "text in UTF-8", "SEG-CKP-013")
    * Doc("Name of the topic.", "SEG-CKP-003"),
    "partition" / _number(_of_three(Word), 32) * Doc("Number of the partition.", "SEG-CKP-004", "SEG-CKP-003"),
    "offset"
    / _number(_of_three(Word), 64)
    * Doc(
        "Recovery point, log start offset, high watermark or first dirty offset; the file name says which.",
        "SEG-CKP-008",
    ),
    "rest" / Checked(RestOfLine, _is_nothing, "three fields", "SEG-CKP-003") * Doc("Nothing.", "SEG-CKP-003"),
)

LeaderEpochCheckpointEntry = Struct(
    "epoch" / _number(_of_two(FirstWord), 32) * Doc("Epoch of a leader.", "SEG-CKP-007", since="0.11.0"),
    "start_offset"
    / _number(_of_two(Word), 64)
    * Doc("First offset that was written under it.", "SEG-CKP-007", since="0.11.0"),
    "rest"
    / Checked(RestOfLine, _is_nothing, "two fields", "SEG-CKP-003")
    * Doc("Nothing.", "SEG-CKP-003", since="0.11.0"),
)

OffsetCheckpoint = Struct(
    *CheckpointHeader.subcons,
    "entries"
    / UntilEnd(OffsetCheckpointEntry)
    * Doc("One line for a partition, in no particular order.", "SEG-CKP-002"),
)

LeaderEpochCheckpoint = Struct(
    *CheckpointHeader.subcons,
    "entries"
    / UntilEnd(LeaderEpochCheckpointEntry)
    * Doc("One line for an epoch, ascending.", "SEG-CKP-002", "SEG-CKP-007", since="0.11.0"),
)

PartitionMetadata = Struct(
    "version"
    / Decimal(
        AfterColon(Checked(Line, _is_version_line, "'version: ' and a number that is not negative", "SEG-CKP-009")), 32
    )
    * Doc("`version: ` and the version: 0; a later one is read alike.", "SEG-CKP-009", since="2.8.0"),
    "topic_id"
    / AfterColon(
        Checked(Line, _is_topic_id_line, "'topic_id: ' and 22 characters of base64url, not all zeros", "SEG-CKP-009")
    )
    * Doc("`topic_id: ` and the UUID of the topic in 22 characters of base64url.", "SEG-CKP-009", since="2.8.0"),
)
