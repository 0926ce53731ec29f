"""The readers that `hostile` runs on changed bytes: all ways in which the package reads a log, a side file or a name.

A reader may return a result, report a finding, or raise a `FormatError`. Any other exception is passed on.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
import zlib
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from enum import IntEnum
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Final

import google_crc32c
import xxhash

from seglog_format import Severity, decode_batch, open_log_directory, open_partition, recover, verify, walk
from seglog_format.cli.main import run
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.errors import FormatError, Location, RefusedError, UsageError
from seglog_format.names import parse_file_name, parse_partition_directory
from seglog_format.types import OffsetIndex, TimeIndex, TransactionIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.types import Finding, Frame, Partition

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
INPUTS: Final = FIXTURES / "hostile" / "inputs.json"

APPLICATION_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__cluster_metadata")
TIMESTAMPS: Final = (-3, -1, 0, 1_700_000_000_000)
OFFSETS: Final = (0, 1, 100, 2**31, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class Input:
    """Bytes to start from.

    Attributes:
        name: unique name.
        kind: kind of the bytes, such as ``log`` or ``offset-index``.
        data: the unchanged bytes.
        topic: topic that the bytes belong to.
        base_offset: base offset of the segment.
        log: name of the input with the log beside this file; empty if this is the log.
        magic: magic of the wrapper around messages.
    """

    name: str
    kind: str
    data: bytes
    topic: str = "topic"
    base_offset: int = 0
    log: str = ""
    magic: int = 0


def inputs() -> dict[str, Input]:
    """Return all inputs by name."""
    rows = json.loads(INPUTS.read_text(encoding="utf-8"))
    return {
        row["name"]: Input(
            row["name"],
            row["kind"],
            bytes.fromhex(row["hex"]),
            row.get("topic", "topic"),
            row.get("baseOffset", 0),
            row.get("log", ""),
            row.get("magic", 0),
        )
        for row in rows
    }


# Variants of changed bytes


def variants(given: Input, changed: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the changed bytes unmodified, and with corrected checksums: else no code after a checksum is reached."""
    if given.kind == "messages-inside":
        yield "wrapped", wrapper_of(changed, given.magic)
        return
    yield "", changed
    sealed = SEALS[given.kind](given.data, changed) if given.kind in SEALS else changed
    if sealed != changed:
        yield "sealed", sealed


def wrapper_of(messages: bytes, magic: int) -> bytes:
    """Return an intact wrapper around any bytes, stored in one lz4 block."""
    descriptor = bytes([0x60, 0x40])
    checksum = xxhash.xxh32_intdigest(descriptor) >> 8 & 0xFF
    value = b"\x04\x22\x4d\x18" + descriptor + bytes([checksum])
    value += struct.pack("<I", len(messages) | 1 << 31) + messages if messages else b""
    value += bytes(4)
    fixed = struct.pack(">bb", magic, 3) + (struct.pack(">q", 1000) if magic else b"")
    body = fixed + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", 1000, len(body) + 4, zlib.crc32(body)) + body


def seal_log(original: bytes, changed: bytes) -> bytes:
    """Return the bytes with corrected checksums of all entries, at their positions in the original."""
    data = bytearray(changed)
    for frame in walk(original):
        start, end = frame.position, min(frame.end, len(data))
        if end - start >= 21 and frame.header.magic == 2:  # noqa: PLR2004 - positions of the format
            data[start + 17 : start + 21] = struct.pack(">I", google_crc32c.value(bytes(data[start + 21 : end])))
        elif end - start >= 16 and frame.header.magic < 2:  # noqa: PLR2004
            data[start + 12 : start + 16] = struct.pack(">I", zlib.crc32(bytes(data[start + 16 : end])))
    return bytes(data)


def seal_snapshot(_original: bytes, changed: bytes) -> bytes:
    """Return the bytes of a producer snapshot with a corrected checksum."""
    return changed[:2] + struct.pack(">I", google_crc32c.value(changed[6:])) + changed[6:]


SEALS: Final = {"log": seal_log, "metadata-snapshot": seal_log, "producer-snapshot": seal_snapshot}


# Reading


class Reading:
    """One attempt with its refusals and findings."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.findings = 0

    @property
    def outcome(self) -> str:
        """Return the strongest outcome: ``FormatError``, ``finding`` or ``result``."""
        if self.refused:
            return "FormatError"
        return "finding" if self.findings else "result"

    def find(self, findings: Iterable[Finding]) -> None:
        """Count the findings of a validator, except notes."""
        for finding in findings:
            self.findings += bool(str(finding)) and finding.severity is not Severity.NOTE

    def attempt(self, read: Callable[[], object]) -> None:
        """Call a reader; a `FormatError` is an answer.

        Raises:
            AssertionError: the reader ran out of memory: no changed input decompresses to much.
        """
        try:
            read()
        except RefusedError as error:
            msg = f"refused: {error}"
            raise AssertionError(msg) from error
        except FormatError as error:
            self.refused[error.requirements[0]] += 1
            str(error)


def read_log(reading: Reading, data: bytes, given: Input, file: Path) -> None:
    """Walk, decode entries and the contents of records, and verify."""
    found: list[Frame] = []
    reading.attempt(lambda: found.extend(walk(data, path="log")))
    for frame in found:
        reading.attempt(lambda frame=frame: _decode_contents(reading, frame, given.topic))
    reading.find(verify(file))


def _decode_contents(reading: Reading, frame: Frame, topic: str) -> None:
    topics = (topic,) if topic in APPLICATION_TOPICS else APPLICATION_TOPICS
    batch = decode_batch(frame.data, at=Location("log", frame.position))
    for record in batch.records:
        if batch.header.is_control:
            reading.attempt(lambda record=record: decode_control_record(record.key, record.value, Location("record")))
        for name in topics:
            decode_application_record(name, record.key, record.value)


def read_partition(reading: Reading, path: Path, *, trust_indexes: bool = False) -> tuple[object, ...]:
    """Read a partition directory in all ways; return the answers, to compare them."""
    answers: list[object] = []

    def ask(read: Callable[[], object]) -> None:
        def keep() -> None:
            answers.append(read())

        reading.attempt(keep)

    with open_partition(path, trust_indexes=trust_indexes) as partition:
        ask(lambda: partition.log_start_offset)
        ask(lambda: partition.log_end_offset)
        ask(lambda: partition.last_stable_offset)
        ask(lambda: [record.offset for record in partition.records()])
        ask(lambda: [record.offset for record in partition.records(isolation="read_committed")])
        for timestamp in TIMESTAMPS:
            ask(lambda timestamp=timestamp: partition.offset_for_timestamp(timestamp))
        for offset in _askable(partition):
            ask(lambda offset=offset: partition.read(offset, 200).next_offset)
    reading.attempt(lambda: recover(path).losses())
    return tuple(answers)


def _askable(partition: Partition) -> list[int]:
    start, end = partition.log_start_offset, partition.log_end_offset
    return sorted({start, (start + end) // 2, max(end - 1, start), end})


def read_root(reading: Reading, root: Path) -> None:
    """Read a log directory in all ways."""
    directories = open_log_directory(root)
    for directory in directories.directories:
        for answer in (directory.recovery_points, directory.log_start_offsets, directory.high_watermarks):
            len(answer)
        len(directory.cleaner_offsets)
    reading.find(verify(root))
    command("dump", "--json", "--decode", "--raw", str(root))


def read_command_line(root: Path, file: Path) -> None:
    """Run commands that print files; they only have to end, with any status."""
    partition = str(root / "topic-0")
    for arguments in (
        ["ls", str(root)],
        ["dump", str(root)],
        ["dump", "--json", "--decode", str(file)],
        ["verify", str(root)],
        ["inspect", "--all", str(file)],
        ["lookup", partition, "0", "--explain"],
    ):
        command(*arguments)


def command(*arguments: str, given: bytes = b"") -> None:
    """Run a command, and discard its output.

    Args:
        arguments: arguments of the command line.
        given: bytes on standard input.

    Raises:
        AssertionError: there is no such command or option.
    """
    reported = BytesIO()
    before, sys.stdin = sys.stdin, TextIOWrapper(BytesIO(given))
    try:
        with TextIOWrapper(reported, encoding="utf-8") as sink, redirect_stdout(sink), redirect_stderr(sink):
            run(list(arguments))
            sink.flush()
            assert b"No such option" not in reported.getvalue(), arguments
    finally:
        sys.stdin = before


# Kinds of input


def _index(kind: type[OffsetIndex | TimeIndex], data: bytes, base_offset: int) -> None:
    with kind.from_bytes(data, base_offset, "index") as index:
        for answer in (index.entries, index.raw_entries(), index.file_size, index.slot_count, index.trailing_size):
            repr(answer)
        for number in (*OFFSETS, -1, base_offset):
            index.lookup(number)


def _aborted(data: bytes, base_offset: int) -> None:
    index = TransactionIndex.from_bytes(data, base_offset, "index")
    for offset in OFFSETS:
        index.aborted(offset, offset + 100)


DECODERS: Final[dict[str, Callable[[bytes, Input], object]]] = {
    "offset-index": lambda data, given: _index(OffsetIndex, data, given.base_offset),
    "time-index": lambda data, given: _index(TimeIndex, data, given.base_offset),
    "transaction-index": lambda data, given: _aborted(data, given.base_offset),
}
"""What `verify` does not ask of an index; of files of other kinds, it reads everything."""

FILE_NAMES: Final = {
    "log": "topic-0/{base:020}.log",
    "messages-inside": "topic-0/{base:020}.log",
    "metadata-snapshot": "__cluster_metadata-0/{base:020}-0000000001.checkpoint",
    "offset-index": "topic-0/{base:020}.index",
    "time-index": "topic-0/{base:020}.timeindex",
    "transaction-index": "topic-0/{base:020}.txnindex",
    "producer-snapshot": "topic-0/{base:020}.snapshot",
    "leader-epochs": "topic-0/leader-epoch-checkpoint",
    "partition-metadata": "topic-0/partition.metadata",
    "quorum-state": "__cluster_metadata-0/quorum-state",
    "offset-checkpoint": "recovery-point-offset-checkpoint",
    "meta-properties": "meta.properties",
    "clean-shutdown": ".kafka_cleanshutdown",
}
LOGS: Final = {"log", "messages-inside", "metadata-snapshot"}
INDEXES: Final = {"offset-index", "time-index", "transaction-index"}
NAMES: Final = {"file-names", "directory-names"}


class Depth(IntEnum):
    """The depth of a read; each includes those before it, and takes several times as long.

    ``BYTES``: decode and verify. ``DIRECTORY``: also lookups, recovery and lines of the log directory around.
    ``FIELDS``: also the field tree of `inspect`. ``COMMAND_LINE``: also the output of commands.
    """

    BYTES = 1
    DIRECTORY = 2
    FIELDS = 3
    COMMAND_LINE = 4


class Target:
    """A log directory around an input, in which its file is replaced again and again."""

    def __init__(self, given: Input, root: Path) -> None:
        self.given = given
        self.root = root
        if given.kind in NAMES:
            return
        self.file = root / FILE_NAMES[given.kind].format(base=given.base_offset)
        self.partition = self.file.parent if self.file.parent != root else root / "topic-0"
        self.partition.mkdir(parents=True)
        if given.log:
            log = inputs()[given.log]
            (self.partition / f"{given.base_offset:020}.log").write_bytes(log.data)
        self.answers = read_partition(Reading(), self.partition)

    def read(self, data: bytes, depth: Depth) -> Reading:
        """Read changed bytes.

        Raises:
            AssertionError: a changed side file changes what is read from the log (SEG-IDX-009).
        """
        reading = Reading()
        if self.given.kind in NAMES:
            read_names(reading, data, self.given.kind, self.root)
        elif self.given.kind in LOGS:
            self._replace(data)
            read_log(reading, data, self.given, self.file)
        else:
            self._replace(data)
            if self.given.kind in INDEXES:
                reading.attempt(lambda: DECODERS[self.given.kind](data, self.given))
            reading.find(verify(self.file))
        if self.given.kind not in NAMES and depth >= Depth.DIRECTORY:
            self._replace(data)
            self._read_directory(reading, data, depth)
        return reading

    def _read_directory(self, reading: Reading, data: bytes, depth: Depth) -> None:
        self._read_partition(reading)
        read_root(reading, self.root)
        if depth >= Depth.FIELDS:
            command("inspect", "--json", "--all", str(self.file))
            command("inspect", "--json", "--all", "-", given=data)
        if depth >= Depth.COMMAND_LINE:
            read_command_line(self.root, self.file)

    def _replace(self, data: bytes) -> None:
        beside = self.root.parent / "changed"
        beside.write_bytes(data)
        beside.replace(self.file)

    def _read_partition(self, reading: Reading) -> None:
        answers = read_partition(reading, self.partition)
        if self.given.kind not in LOGS and answers != self.answers:
            msg = f"a {self.given.kind} changes what is read: {answers} instead of {self.answers}"
            raise AssertionError(msg)
        if self.given.kind in INDEXES:
            read_partition(reading, self.partition, trust_indexes=True)


def read_names(reading: Reading, data: bytes, kind: str, root: Path) -> None:
    """Parse each line as a name, and give it to a file or a directory if the system accepts it."""
    names = [os.fsdecode(line) for line in data.split(b"\n")]
    for name in names:
        reading.attempt(lambda name=name: parse_file_name(name))
        reading.attempt(lambda name=name: parse_partition_directory(name))
    shutil.rmtree(root, ignore_errors=True)
    parent = root if kind == "directory-names" else root / "topic-0"
    parent.mkdir(parents=True)
    for name in filter(is_possible, names):
        (parent / name).mkdir(exist_ok=True) if kind == "directory-names" else (parent / name).touch()
    if kind == "file-names":
        with suppress(UsageError):  # none of these names is one of Kafka's
            read_partition(reading, parent)
    with suppress(UsageError):
        read_root(reading, root)


def is_possible(name: str) -> bool:
    """Return whether a file can have this name."""
    return name not in {"", ".", ".."} and "/" not in name and "\0" not in name and len(os.fsencode(name)) <= 255  # noqa: PLR2004
