"""What keeps a broker from starting on a log directory, or from serving a partition in it, beside the logs themselves.

`broker_starts.json`, `given_up_directories.json`, `meta_properties.json` and `partition_metadata.json` in
`fixtures/witnesses` have what stock brokers do.
"""

from __future__ import annotations

import base64
import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.codec.checkpoints import decode_meta_properties, decode_offset_checkpoint, decode_partition_metadata
from seglog_format.errors import FormatError, Location, SeglogError, UnreadableError
from seglog_format.log.gaps import unsnapshotted_gap
from seglog_format.log.listing import list_partition
from seglog_format.log.side_files import meta_properties_of
from seglog_format.names import METADATA_TOPICS, FileKind, parse_decimal
from seglog_format.storage.byte_source import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import LogDirectoryListing

KRAFT_VERSION = 1
"""Version of `meta.properties` in a KRaft cluster (SEG-LDR-005)."""
READ_FIRST = {
    FileKind.META_PROPERTIES: decode_meta_properties,
    FileKind.RECOVERY_POINT_CHECKPOINT: decode_offset_checkpoint,
    FileKind.LOG_START_OFFSET_CHECKPOINT: decode_offset_checkpoint,
    FileKind.REPLICATION_OFFSET_CHECKPOINT: decode_offset_checkpoint,
}
"""Files that make a broker give up the log directory if they cannot be read; the last one only with a partition there.

It stops if it has no other log directory, or the metadata log is in this one.
"""
AFTER_COLON = re.compile(r":[ \t\v\f]+")
UUID_TEXT = re.compile(r"([\w-]{22})(?:==)?", re.ASCII)
RESERVED_DIRECTORY_IDS = 100
"""So many first UUIDs are no ids of log directories."""


class StartEffect(Enum):
    """What a broker does."""

    REFUSES = "no broker starts"
    GIVEN_UP = "a broker gives up this log directory with its partitions, and does not start if it has no other"
    STRAY = "a broker renames the directory to -stray, and begins an empty partition"


class StartProblem(NamedTuple):
    """Something that a broker does not accept when it starts.

    Attributes:
        error: where it is, what is expected and found, and the rule.
        effect: what a broker does.
    """

    error: FormatError
    effect: StartEffect

    def __str__(self) -> str:
        return f"{self.effect.value}: {self.error}"


def start_problems(listing: LogDirectoryListing) -> Iterator[StartProblem]:
    """Yield what a broker does not accept in a log directory; its small files are read, not its logs.

    SEG-LDR-001, SEG-LDR-005, SEG-LDR-008, SEG-CKP-001 to SEG-CKP-004, SEG-CKP-009 and SEG-PDR-029.
    """
    for kind, decode in READ_FIRST.items():
        error = _unreadable(listing.path / kind.value, decode)
        if error is not None and (kind is not FileKind.REPLICATION_OFFSET_CHECKPOINT or _has_others(listing)):
            yield StartProblem(error, _given_up(listing))
    yield from missing_ids(listing) if has_metadata(listing) else ()
    yield from _directory_id_problem(listing)
    yield from (StartProblem(misnamed, StartEffect.REFUSES) for misnamed in listing.misnamed)
    for directory in without_topic_ids(listing):
        yield StartProblem(without_topic_id(directory), StartEffect.STRAY)
    for entry in listing.partitions:
        if not entry.name.state:
            find = _unsnapshotted if entry.name.topic in METADATA_TOPICS else _unreadable_topic_id
            error = find(entry.path)
            if error is not None:
                yield StartProblem(error, StartEffect.REFUSES)


def missing_ids(listing: LogDirectoryListing) -> Iterator[StartProblem]:
    """Yield what a node of KRaft misses in a `meta.properties` that it can read (SEG-LDR-005)."""
    properties = meta_properties_of(listing.path)
    ids = {} if properties is None else {"node.id": properties.node_id, "cluster.id": properties.cluster_id}
    for name in (name for name, value in ids.items() if value is None):
        where = Location(str(listing.path / FileKind.META_PROPERTIES.value), field=name)
        error = FormatError(where, "SEG-LDR-005", expected="an id in KRaft", found="none")
        yield StartProblem(error, StartEffect.REFUSES)


def _directory_id_problem(listing: LogDirectoryListing) -> Iterator[StartProblem]:
    """Yield a `directory.id` that a node does not accept (SEG-LDR-005)."""
    properties = meta_properties_of(listing.path)
    text = None if properties is None else properties.directory_id
    if text is not None and ((number := directory_number(text)) is None or number < RESERVED_DIRECTORY_IDS):
        where = Location(str(listing.path / FileKind.META_PROPERTIES.value), field="directory.id")
        error = FormatError(where, "SEG-LDR-005", expected="a UUID of its own", found=text)
        yield StartProblem(error, _given_up(listing) if number is None else StartEffect.REFUSES)


def directory_number(text: str) -> int | None:
    """Return the UUID in a `directory.id` as a number; None if there is none, as Kafka's class reads it."""
    found = UUID_TEXT.fullmatch(text)
    return None if found is None else int.from_bytes(base64.urlsafe_b64decode(f"{found[1]}=="), "big")


def _unsnapshotted(directory: Path) -> FormatError | None:
    gap = unsnapshotted_gap(list_partition(directory))
    return None if gap is None else without_snapshot(gap)


def without_snapshot(gap: Gap) -> FormatError:
    """Return the error of a metadata log whose first records are neither in it nor in a snapshot (SEG-PDR-029)."""
    expected = f"a metadata snapshot with an end offset of {gap.next_offset} or more"
    return FormatError(Location(gap.path, field="offset"), "SEG-PDR-029", expected=expected, found="none")


def _unreadable_topic_id(directory: Path) -> FormatError | None:
    return _unreadable(directory / FileKind.PARTITION_METADATA.value, _decode_topic_id)


def _decode_topic_id(data: bytes, at: Location) -> None:
    if _topic_id_in(data) is None:
        decode_partition_metadata(data, at)  # it accepts less than a broker


def topic_id_read(directory: Path) -> str | None:
    """Return the topic id that a broker reads in a partition directory; None if it reads none."""
    path = directory / FileKind.PARTITION_METADATA.value
    try:
        return _topic_id_in(read_whole(path)) if path.exists() else None
    except SeglogError:
        return None  # it is reported where the file is read


def _topic_id_in(data: bytes) -> str | None:
    """Return the topic id that a broker reads in `partition.metadata`; None if it does not start (SEG-CKP-009).

    It does not look at the words before the colons, and drops the bits beyond the sixteenth byte of the id.
    """
    try:
        lines = [line.decode() for line in re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2]]
    except UnicodeDecodeError:
        return None
    words = [*map(_after_colon, lines), ""]
    version, number = parse_decimal(words[0], bits=32), directory_number(words[1])
    if version is None or version < 0 or not number:
        return None
    return base64.urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")


def _after_colon(line: str) -> str:
    """Return the second of two words; empty if there are fewer or more."""
    words = AFTER_COLON.split(line)
    while words and not words[-1]:
        words.pop()
    return words[1] if len(words) == 2 else ""  # noqa: PLR2004 - it says so


def _unreadable(path: Path, decode: Callable[[bytes, Location], object]) -> FormatError | None:
    try:
        if path.is_file():
            decode(read_whole(path), Location(str(path)))
    except UnreadableError:
        return None  # of the disk, which is reported where the file is read
    except FormatError as error:
        return error
    return None


def without_topic_ids(listing: LogDirectoryListing) -> list[Path]:
    """Return the partition directories in use that lack `partition.metadata` in a KRaft cluster (SEG-LDR-008)."""
    in_use = (entry for entry in listing.partitions if not entry.name.state and entry.name.topic not in METADATA_TOPICS)
    without = [entry.path for entry in in_use if not (entry.path / FileKind.PARTITION_METADATA.value).exists()]
    return without if without and has_kraft(listing) else []


def without_topic_id(directory: Path) -> FormatError:
    """Return the error of a partition directory that lacks `partition.metadata` (SEG-LDR-008)."""
    where = Location(str(directory), field="partition.metadata")
    return FormatError(where, "SEG-LDR-008", expected="a file with the id of the topic", found="none")


def has_kraft(listing: LogDirectoryListing) -> bool:
    """Return whether a log directory is of a KRaft cluster, as far as it shows (SEG-LDR-008)."""
    properties = meta_properties_of(listing.path)
    return has_metadata(listing) or (properties is not None and properties.version == KRAFT_VERSION)


def has_metadata(listing: LogDirectoryListing) -> bool:
    """Return whether the metadata log is in a log directory."""
    return any(entry.name.topic in METADATA_TOPICS for entry in listing.partitions)


def _has_others(listing: LogDirectoryListing) -> bool:
    return any(entry.name.topic not in METADATA_TOPICS for entry in listing.partitions if not entry.name.state)


def _given_up(listing: LogDirectoryListing) -> StartEffect:
    return StartEffect.REFUSES if has_metadata(listing) else StartEffect.GIVEN_UP
