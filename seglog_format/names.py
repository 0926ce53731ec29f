"""Names of files, directories and objects of a remote store: parsing and formatting (chapters 10, 11 and 47).

All functions are pure. Parsing accepts all names that a broker accepts, which are more than it writes: any number of
digits, of any script. The result keeps unusual spellings (`FileName.digits`,
`PartitionDirectoryName.digits`), so a validator can report them. Names come from hostile sources: they may hold
line breaks, control characters or undecodable bytes, and never appear unescaped in an error (`printable`).
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from typing import Final, NamedTuple

from seglog_format.errors import FormatError, Location, UsageError

# -- decimal numbers in names and text files, as a broker's own parser accepts them (chapter 00) -----------------------


MAX_DIGITS: Final = len(str(2**63 - 1))
"""Number of digits of the greatest 64-bit number."""

SHORT: Final = 20
"""Number of digits in the name of a segment; texts of at most this length take the fast path."""

_NUMBER = re.compile(r"[+-]?\d+")


def is_decimal(text: str) -> bool:
    """Return whether the text is a decimal number as chapter 00 defines it, of any size.

    A broker's own parser accepts an optional sign, and decimal digits of any script in the Basic Multilingual Plane.
    """
    return bool(_NUMBER.fullmatch(text)) and (text.isascii() or max(text) <= "\uffff")


def parse_decimal(text: str, *, bits: int) -> int | None:
    """Return the value of a decimal number; None if the text is not a number, or the number exceeds the width.

    Args:
        text: any string, of any length.
        bits: width of the signed integer: 32 or 64.
    """
    is_short = len(text) <= SHORT and text.isascii() and text.isdigit()  # nearly all are
    value = int(text) if is_short else _value_of(text)
    return value if value is not None and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _value_of(text: str) -> int | None:
    """Return the value of a decimal number; None if the text is no number, or has far too many digits."""
    if not is_decimal(text):
        return None
    digits = "".join(str(unicodedata.decimal(each)) for each in text.lstrip("+-"))
    significant = digits.lstrip("0") or "0"
    if len(significant) > MAX_DIGITS:
        return None
    return -int(significant) if text[0] == "-" else int(significant)


# -- file and directory names ------------------------------------------------------------------------------------------


NO_OFFSET: Final = -1
"""The offset or epoch of a file whose name has none."""

OFFSET_DIGITS: Final = 20
EPOCH_DIGITS: Final = 10
MAX_OFFSET: Final = 2**63 - 1
MAX_PARTITION: Final = 2**31 - 1
MAX_NAME_SIZE: Final = 255
MAX_TOPIC_SIZE: Final = 249
METADATA_TOPIC: Final = "__cluster_metadata"
EARLY_METADATA_TOPIC: Final = "@metadata"  # of Kafka 2.8, with KRaft in early access
REMOTE_LOG_METADATA_TOPIC: Final = "__remote_log_metadata"
CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
METADATA_TOPICS: Final = frozenset({METADATA_TOPIC, EARLY_METADATA_TOPIC})
COORDINATOR_TOPICS: Final = (CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE)
DECODED_TOPICS: Final = (*COORDINATOR_TOPICS, METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC)
"""Topics whose records are decoded."""
REMOTE_INDEX_CACHE: Final = "remote-log-index-cache"
RESERVED_IDS: Final = 100
"""Ids below this number name no directory: unassigned, lost, migrating. Of topics: none, and the metadata log."""

DELETE_STATE: Final = "delete"
"""Brokers remove directories in this state without reading them."""
STATES: Final = (DELETE_STATE, "future", "stray")
"""Possible endings after the unique part of a directory name."""

TEMPORARY_SUFFIXES: Final = (".deleted", ".cleaned", ".swap", ".part", ".tmp")
_UNPARSED_SUFFIXES = frozenset({".deleted", ".part", ".tmp"})
_TOPIC = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_TOPIC_SIZE}}}")
_UNIQUE = re.compile(r"[0-9a-f]{32}")
_WHITE_SPACE = re.compile(r"[ \t\n\x0b\f\r]")
"""White space as brokers define it; Python's own ``\\s`` includes far more."""

_SNAPSHOT = re.compile(rf"(\d{{{OFFSET_DIGITS}}})-(\d{{{EPOCH_DIGITS}}})(-[^.]*)?")

assert len(str(MAX_OFFSET)) == OFFSET_DIGITS - 1
assert len(str(MAX_PARTITION)) == EPOCH_DIGITS


class FileKind(Enum):
    """The kind of a file in a log directory or partition directory; the value is its fixed name or its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    METADATA_SNAPSHOT = ".checkpoint"
    BOOTSTRAP_SNAPSHOT = "bootstrap.checkpoint"
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    PARTITION_METADATA = "partition.metadata"
    QUORUM_STATE = "quorum-state"
    RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
    LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
    REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
    CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
    META_PROPERTIES = "meta.properties"
    CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
    LOCK = ".lock"

    __hash__ = object.__hash__  # as members are equal if they are one object; that of `Enum` takes ten times as long


INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
NUMBERED_KINDS: Final = (FileKind.LOG, *INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT)
"""Kinds whose names are an offset and a suffix."""

OFFSET_CHECKPOINT_KINDS: Final = (
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.LOG_START_OFFSET_CHECKPOINT,
    FileKind.REPLICATION_OFFSET_CHECKPOINT,
    FileKind.CLEANER_OFFSET_CHECKPOINT,
)

STANDARD_INPUT: Final = "-"
"""Name of a log that a command reads from its standard input."""

FIXED_NAMES: Final = {
    kind.value: kind for kind in FileKind if kind not in NUMBERED_KINDS and kind is not FileKind.METADATA_SNAPSHOT
}
"""Kinds by name, for files whose names have no offset."""

_NUMBERED = {kind.value: kind for kind in NUMBERED_KINDS}


class FileName(NamedTuple):
    """A file name with a meaning.

    Attributes:
        base_offset: the offset in the name: a segment's base offset, the first offset that a producer snapshot does not
            cover, or a metadata snapshot's end offset; `NO_OFFSET` for a fixed name.
        kind: kind of the file.
        suffix: appended by a broker that replaces or removes the file: ``.deleted``, ``.cleaned``, ``.swap``,
            ``.part`` or ``.tmp``; empty for a file in use.
        digits: the offset as written, with its sign; empty for a fixed name.
        epoch: of a metadata snapshot, else `NO_OFFSET`.
    """

    base_offset: int
    kind: FileKind
    suffix: str = ""
    digits: str = ""
    epoch: int = NO_OFFSET

    @property
    def has_twenty_digits(self) -> bool:
        """Return whether the offset is written in exactly 20 digits of any script (SEG-PDR-005)."""
        return len(self.digits) == OFFSET_DIGITS and self.digits.isdecimal()

    @property
    def has_ascii_digits(self) -> bool:
        """Return whether the digits of the offset are ASCII (SEG-PDR-006); a sign is ignored."""
        return self.digits.isascii()

    @property
    def is_canonical(self) -> bool:
        """Return whether the name is the one that a broker opens for this offset; always True for a fixed name."""
        return not self.digits or (
            len(self.digits) == OFFSET_DIGITS and self.digits.isascii() and self.digits.isdecimal()
        )


class PartitionDirectoryName(NamedTuple):
    """The name of a partition directory.

    Attributes:
        topic: everything before the last dash; may itself hold dashes. Truncated if `is_topic_cut`.
        partition: 0 to 2147483647.
        unique: part that distinguishes renamed directories of one partition, usually 32 hexadecimal digits; empty
            for a partition in use.
        state: ``delete``, ``future`` or ``stray``; empty for a partition in use.
        digits: the partition as written.
    """

    topic: str
    partition: int
    unique: str = ""
    state: str = ""
    digits: str = ""

    def __str__(self) -> str:
        renamed = f".{self.unique}-{self.state}" if self.state else ""
        return f"{self.topic}-{self.digits or self.partition}{renamed}"

    @property
    def topic_partition(self) -> tuple[str, int]:
        """Topic and partition number, which identify the partition on a broker."""
        return self.topic, self.partition

    @property
    def is_topic_cut(self) -> bool:
        """Return whether the name has maximum length, so the topic is probably truncated."""
        return self.state in {"delete", "stray"} and len(str(self)) == MAX_NAME_SIZE

    @property
    def has_plain_partition(self) -> bool:
        """Return whether the partition is in plain ASCII digits, as brokers write it (SEG-PDR-017)."""
        return self.digits in {"", str(self.partition)}


def printable(text: str, limit: int = MAX_NAME_SIZE) -> str:
    r"""Escape a name or value for display: unprintable characters become ``\n``, ``\x1b``, ``\udc80`` and so on.

    After ``limit`` characters an ellipsis replaces the rest (SEG-PDR-027).
    """
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[:limit])
    return shown if len(text) <= limit else shown + "…"


def is_legal_topic(topic: str) -> bool:
    """Return whether a broker would create a topic of this name (SEG-PDR-002)."""
    return bool(_TOPIC.fullmatch(topic)) and topic not in {".", ".."}


def require_text(topic: str, at: Location) -> None:
    """Refuse a topic whose directory has a name that is not UTF-8: nothing that is text can name it.

    Raises:
        FormatError: it is such a topic (SEG-PDR-002).
    """
    if not is_text(topic):
        raise FormatError(at, "SEG-PDR-002", expected="the name of a topic, in ASCII", found=ascii(topic))


def is_text(name: str) -> bool:
    """Return whether the name of a file is UTF-8; a file with another name can be opened, but not named in text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_topic(topic: str) -> None:
    """Refuse a topic name that a broker would not create (SEG-PDR-002).

    Raises:
        UsageError: the name is not legal.
    """
    shown = repr(printable(topic)) if isinstance(topic, str) else repr(topic)
    rule = f"1 to {MAX_TOPIC_SIZE} of a-z A-Z 0-9 . _ -, and neither . nor .. (SEG-PDR-002)"
    _require(isinstance(topic, str) and is_legal_topic(topic), f"{shown} is no name of a topic, which has {rule}")


def is_usual_unique(unique: str) -> bool:
    """Return whether the unique part of a directory name has the form that brokers write (SEG-PDR-004)."""
    return bool(_UNIQUE.fullmatch(unique))


def parse_partition_directory(name: str) -> PartitionDirectoryName:
    """Parse the name of a partition directory.

    Args:
        name: without its parent directories.

    Raises:
        FormatError: a broker would not start with a directory of that name (SEG-PDR-001, SEG-PDR-003).
    """
    plain, unique, state = _split_state(name)
    if state and (not plain or not unique or _WHITE_SPACE.search(name)):
        expected, at = f"<topic>-<partition>.<unique>-{state}", Location(printable(name), field="name")
        raise FormatError(at, "SEG-PDR-003", expected=expected, found=printable(name))
    topic, _, digits = plain.rpartition("-")
    if not topic or not digits:
        at = Location(printable(name), field="name")
        raise FormatError(at, "SEG-PDR-001", expected="<topic>-<partition>", found=printable(name))
    partition = parse_decimal(digits, bits=32)
    if partition is None:
        expected, at = f"a partition of 0 to {MAX_PARTITION}", Location(printable(name), field="partition")
        raise FormatError(at, "SEG-PDR-001", expected=expected, found=printable(digits))
    return PartitionDirectoryName(topic, partition, unique, state, digits)


def _split_state(name: str) -> tuple[str, str, str]:
    """Split a name into the part before the unique part, the unique part, and the state."""
    for state in STATES:
        if name.endswith("-" + state):
            plain, _, unique = name[: -len(state) - 1].rpartition(".")
            return plain, unique, state
    return name, "", ""


def require_written_directory(name: str) -> tuple[str, int]:
    """Return topic and partition of a directory that a writer may create or append to: in use, with a broker's name.

    Args:
        name: without its parent directories.

    Raises:
        UsageError: a broker would not make a directory of that name (SEG-PDR-001, SEG-PDR-002, SEG-PDR-017), or the
            directory was renamed (SEG-PDR-003).
    """
    try:
        topic, partition = parse_partition_directory(name).topic_partition
    except FormatError as error:
        raise UsageError(str(error)) from error
    expected = partition_directory_name(topic, partition)
    _require(name == expected, f"{printable(name)}: a writer appends to a directory named {expected}")
    return topic, partition


def parse_file_name(name: str) -> FileName | None:
    """Parse a file name; return None if it has no meaning, so readers ignore the file (SEG-PDR-011).

    Args:
        name: without its parent directories.

    Raises:
        FormatError: the name has the suffix of a segment file or snapshot, and the rest of it is not an offset
            (SEG-PDR-005, SEG-PDR-015), or is an impossible one (SEG-PDR-007).
    """
    digits, usual = name[:OFFSET_DIGITS], _NUMBERED.get(name[OFFSET_DIGITS:])
    if usual is not None and digits.isascii() and digits.isdecimal() and (offset := int(digits)) <= MAX_OFFSET:
        return FileName(offset, usual, "", digits)
    plain, suffix = _split_suffix(name)
    if plain in FIXED_NAMES:
        return FileName(NO_OFFSET, FIXED_NAMES[plain], suffix)
    try:
        return _parse_numbered(plain, suffix, Location(printable(name)))
    except FormatError:
        # Brokers remove or ignore such files without parsing the offset.
        if suffix in _UNPARSED_SUFFIXES:
            return None
        raise


def _split_suffix(name: str) -> tuple[str, str]:
    for suffix in TEMPORARY_SUFFIXES:
        if name.endswith(suffix):
            return name[: -len(suffix)], suffix
    return name, ""


def _parse_numbered(plain: str, suffix: str, at: Location) -> FileName | None:
    digits, dot, extension = plain.rpartition(".")
    if kind := _NUMBERED.get(dot + extension):
        if not is_decimal(digits):
            expected = f"{OFFSET_DIGITS} digits before {kind.value}"
            raise FormatError(at.at("base_offset"), "SEG-PDR-005", expected=expected, found=printable(digits) or "none")
        return FileName(_offset(digits, at), kind, suffix, digits)
    if dot + extension == FileKind.METADATA_SNAPSHOT.value and digits[:1].isdecimal():
        return _parse_snapshot(digits, suffix, at)
    return None


def _parse_snapshot(stem: str, suffix: str, at: Location) -> FileName:
    match = _SNAPSHOT.fullmatch(stem)
    # Only a snapshot that is still being written has random text after its epoch.
    epoch = parse_decimal(match[2], bits=32) if match and (not match[3] or suffix == ".part") else None
    if match is None or epoch is None:
        expected = f"{OFFSET_DIGITS} digits, '-', {EPOCH_DIGITS} digits"
        raise FormatError(at.at("name"), "SEG-PDR-015", expected=expected, found=printable(stem))
    return FileName(_offset(match[1], at), FileKind.METADATA_SNAPSHOT, suffix, match[1], epoch)


def _offset(digits: str, at: Location) -> int:
    offset = parse_decimal(digits, bits=64)
    if offset is None or offset < 0:
        expected = f"an offset of 0 to {MAX_OFFSET}"
        raise FormatError(at.at("base_offset"), "SEG-PDR-007", expected=expected, found=printable(digits))
    return offset


def segment_file_name(base_offset: int, kind: FileKind, suffix: str = "") -> str:
    """Return the name under which a broker opens a segment file: 20 ASCII digits and the suffix (SEG-PDR-005).

    Args:
        base_offset: 0 to 9223372036854775807.
        kind: one of `NUMBERED_KINDS`.
        suffix: one of `TEMPORARY_SUFFIXES`, or nothing.

    Raises:
        UsageError: the offset is out of range, or the kind is not numbered.
    """
    _require(kind in NUMBERED_KINDS, f"a {kind.name} is not named by an offset")
    _require(0 <= base_offset <= MAX_OFFSET, f"base offset {base_offset} is not from 0 to {MAX_OFFSET}")
    return f"{base_offset:0{OFFSET_DIGITS}d}{kind.value}{suffix}"


def is_reserved_id(data: bytes) -> bool:
    """Return whether an id of 16 bytes stands for no directory or topic, or for the metadata log."""
    return int.from_bytes(data) < RESERVED_IDS


def partition_directory_name(topic: str, partition: int, unique: str = "", state: str = "") -> str:
    """Return the name of a partition directory, its topic truncated as by brokers (SEG-PDR-001, SEG-PDR-003).

    Only this function derives a path from a topic, and no result leads out of the directory.

    Raises:
        UsageError: the topic is not legal (SEG-PDR-002), the partition out of range, or the state unknown.
    """
    require_topic(topic)
    is_number = isinstance(partition, int) and 0 <= partition <= MAX_PARTITION
    _require(is_number, f"partition {partition!r} is not from 0 to {MAX_PARTITION}")
    _require(state in ("", *STATES) and bool(state) == bool(unique), f"no state {state!r} with unique part {unique!r}")
    end = f"-{partition}" + (f".{unique}-{state}" if state else "")
    room = MAX_NAME_SIZE - len(end) if state in {"delete", "stray"} else len(topic)
    return topic[:room] + end


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise UsageError(message)


# -- objects of a remote store, and copies of indexes beside a log -----------------------------------------------------
# A plug-in of the broker names an object by the start offset of its segment and the id of the segment, so the same
# offsets uploaded twice have two names.


ID_SIZE: Final = 22
"""Characters of an id of Kafka: 16 bytes in base64url without padding."""

_ID: Final = rf"[A-Za-z0-9_-]{{{ID_SIZE}}}"
_OBJECT: Final = re.compile(rf"([0-9]{{{OFFSET_DIGITS}}})-({_ID})(\.[a-z_-]+)")
_CACHED: Final = re.compile(rf"([0-9]{{1,{OFFSET_DIGITS}}})_({_ID})(\.index|\.timeindex|\.txnindex)(\.deleted)?")
_LOCAL_DIRECTORY: Final = re.compile(rf"(.+)-([0-9]{{1,10}})-({_ID})")
_TOPIC_DIRECTORY: Final = re.compile(rf"(.+)-({_ID})")


class ObjectKind(Enum):
    """The content of an object; the value is its suffix."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    LEADER_EPOCHS = ".leader_epoch_checkpoint"
    INDEXES = ".indexes"
    """All of the above except the log, one after the other."""
    MANIFEST = ".rsm-manifest"


FILE_KINDS: Final = {
    ObjectKind.LOG: FileKind.LOG,
    ObjectKind.OFFSET_INDEX: FileKind.OFFSET_INDEX,
    ObjectKind.TIME_INDEX: FileKind.TIME_INDEX,
    ObjectKind.TRANSACTION_INDEX: FileKind.TRANSACTION_INDEX,
    ObjectKind.PRODUCER_SNAPSHOT: FileKind.PRODUCER_SNAPSHOT,
}
"""The kinds of objects that are files of a partition directory as well."""

_KINDS: Final = {kind.value: kind for kind in ObjectKind}


class ObjectName(NamedTuple):
    """The last part of an object's name.

    Attributes:
        start_offset: of the segment, 0 or greater.
        segment_id: 22 characters of base64url; a different id for each attempt to upload.
        kind: of the content.
    """

    start_offset: int
    segment_id: str
    kind: ObjectKind

    def __str__(self) -> str:
        return f"{self.start_offset:0{OFFSET_DIGITS}d}-{self.segment_id}{self.kind.value}"


def parse_object_name(name: str) -> ObjectName | None:
    """Parse the last part of an object's name; return None for any other name.

    Args:
        name: without the parts before it.
    """
    found = _OBJECT.fullmatch(name)
    if found is None or int(found[1]) > MAX_OFFSET or found[3] not in _KINDS:
        return None
    return ObjectName(int(found[1]), found[2], _KINDS[found[3]])


def parse_cached_index(name: str) -> ObjectName | None:
    """Parse the name of a file in `remote-log-index-cache`, even of one being removed; return None for another name."""
    found = _CACHED.fullmatch(name)
    if found is None or int(found[1]) > MAX_OFFSET:
        return None
    return ObjectName(int(found[1]), found[2], _KINDS[found[3]])


class TieredPartition(NamedTuple):
    """A partition, from the name of a directory of objects.

    Attributes:
        topic: of any characters.
        topic_id: 22 characters of base64url.
        partition: 0 to 2147483647.
    """

    topic: str
    topic_id: str
    partition: int


def parse_local_tier_directory(name: str) -> TieredPartition | None:
    """Parse ``<topic>-<partition>-<topic id>``, a directory of LocalTieredStorage; return None for another name.

    Both topic and id may have dashes: the length of the id decides where it starts.
    """
    found = _LOCAL_DIRECTORY.fullmatch(name)
    if found is None or int(found[2]) > MAX_PARTITION:
        return None
    return TieredPartition(found[1], found[3], int(found[2]))


def parse_topic_directory(name: str) -> tuple[str, str] | None:
    """Parse ``<topic>-<topic id>``, the part of an object's name before the partition; None for another name."""
    found = _TOPIC_DIRECTORY.fullmatch(name)
    return None if found is None else (found[1], found[2])
