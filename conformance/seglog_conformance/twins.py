"""Twins of cases: the same shape with other values, whose answer follows from the answer of the case.

A twin begins at another offset, in every file, name and field that holds an offset. Where all batches are plain, the
letters and digits of keys and values are other ones; for `index`, the log is also younger. No reader is asked what the
new answer is: a log that is moved by some offsets has the same records, lookups, cuts and indexes, moved by as many.
"""

from __future__ import annotations

import random
import re
import string
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.twin_batches import NotPlainError, moved_log, with_other_letters
from seglog_format.codec.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json

OFFSETS_MOVED: Final = (1_000, 1_000_000)
"""Smallest and largest number of offsets by which a twin is moved."""
MS_LATER: Final = (1_000, 100_000_000)
BORDERS: Final = (2**31, 2**53, 2**63)
"""No offset of a twin is beyond one of these if that of its case is not: a larger type is another question."""
ALPHABETS: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
"""Letters that are exchanged with one another, so that text stays text."""

FILE: Final = re.compile(r"((?:[^/]+/)?)([0-9]{20})(\.(?:log|index|timeindex|txnindex|snapshot))((?:\.[a-z]+)*)")
BASE_OFFSET: Final = re.compile(r"[0-9]{20}")
PLAIN_NAMES: Final = frozenset({"leader-epoch-checkpoint", "partition.metadata", ".index", ".timeindex", ".txnindex"})
EPOCHS: Final = re.compile(r"(0\n\d+\n)((?:\d+ \d+\n)*)")
TIME_ENTRY: Final = struct.Struct(">qi")
ABORTED: Final = struct.Struct(">hqqqq")
PRODUCER: Final = struct.Struct(">qhiqiqiq")
SNAPSHOT_HEAD: Final = struct.Struct(">hIi")
SNAPSHOT_COVERED: Final = 6
"""Position in a snapshot from which on its checksum covers it."""
ENTRY_OFFSETS: Final = {"index": 0, "timeindex": 1, "checkpoint": 2}
"""Which value of an entry is an offset, by the kind of the parsed file."""

STILL: Final = frozenset({"write"})
"""Operations whose log begins at offset 0: their twins have other keys and values alone."""
FIELDS: Final = {
    "offsets": """
        offset baseOffset lastOffset nextOffset firstOffset lastStableOffset logStartOffset highWatermark recoveryPoint
        cleanerOffset endOffset firstDirtyOffset firstUncleanableOffset maxTimestampOffset fromOffset toOffset
        currentTxnFirstOffset duplicateOf rolled segments groups scanned dropped""",
    "structures": """
        options found entry object batches aborted producers plan cuts remarks differences findings listing incoming
        steps after reject modified""",
    "same": """
        magic codec timestampType baseTimestamp maxTimestamp deleteHorizonMs recordsCount producerId producerEpoch
        baseSequence lastSequence isTransactional isControl partitionLeaderEpoch isValid sizeInBytes timestamp sequence
        innerMagic control coordinatorEpoch attributes timestampDelta offsetDelta consumed tail likeBroker cleanShutdown
        indexIntervalBytes trustIndexes maxBytes isolation policy now config leaderEpoch origin accept truncatedBytes
        isComplete requirement requirements severity at decision reason rollsFirst isDue what size firstTimestamp
        largestTimestamp created jitter isOffsetIndexFull isTimeIndexFull offsetIndexSize timeIndexSize do acks
        isDuplicate isClean kind suffix state version newest mostKeys lastTimestamp trailingZeroEntries class limit
        as entryCount""",
}
"""Fields that hold offsets, or lists of them; objects, or lists of them; and what is the same in a twin."""


class NoTwinError(Exception):
    """A case holds something that stands for itself, or that has no known place in a twin."""


def twin(case: Case, seed: int, number: int = 0) -> Case | None:
    """Return a twin of a case; None if none can be made, or if its answer would be that of the case.

    Args:
        case: case with one expected answer.
        seed: seed of the values.
        number: number of the twin among those of the case.
    """
    if case.result != "valid" or case.is_summed_up or case.older:
        return None
    values = random.Random(f"{seed} {number} {case.id}")  # noqa: S311 - no secret
    by = 0 if case.op in STILL else values.randint(*OFFSETS_MOVED)
    later_ms = values.randint(*MS_LATER) if case.op == "index" else 0
    for letters in (_letters(values), b""):
        maker = _Maker(case, by, later_ms, letters)
        try:
            request, expect, also = maker.request(), maker.part(case.expect), maker.part(case.also)
            untold = tuple(map(maker.path, case.untold))
        except (NoTwinError, NotPlainError, struct.error, OverflowError):
            continue
        if expect != case.expect:
            name = f"twins/{case.digest}-{number}"
            return replace(case, id=name, stored_request=request, stored_expect=expect, also=also, untold=untold)
    return None


def _letters(values: random.Random) -> bytes:
    """Return a table for `bytes.translate`."""
    mixed = ["".join(values.sample(alphabet, len(alphabet))) for alphabet in ALPHABETS]
    return bytes.maketrans("".join(ALPHABETS).encode(), "".join(mixed).encode())


@dataclass(slots=True)
class _Maker:
    """Makes the parts of one twin: first the request, whose checksums are in the answer.

    Attributes:
        case: the case.
        by: number of offsets by which it is moved.
        later_ms: milliseconds by which its log is younger.
        letters: table of letters and digits; empty to keep keys and values.
        checksums: checksums of the changed batches, by those of the case.
    """

    case: Case
    by: int
    later_ms: int
    letters: bytes
    checksums: dict[int, int] = field(default_factory=dict)

    def request(self) -> Json:
        """Return the request; a leader appends batches whose offsets it sets itself, so that these stay."""
        files = self.case.request.get("files")
        if self.by and files is not None and not any(FILE.fullmatch(name) for name in files):
            raise NoTwinError(files)  # an empty log begins at 0
        made = self.part(self.case.request)
        if self.case.request.get("policy") == "append":
            made["data"] = replace(self, by=0).log(self.case.request["data"])
        return made

    def part(self, value: Json) -> Json:
        """Return an object."""
        if self.letters and value.get("isControl"):
            raise NoTwinError(value)  # its keys are no text
        return {self.name(key) if FILE.fullmatch(key) else key: self._value(key, one) for key, one in value.items()}

    def _value(self, key: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if value is None:
            return None
        if FILE.fullmatch(key):
            return self.structure(value)
        made = MADE.get(key)
        if made is None:
            raise NoTwinError(key)
        return made(self, value)

    def same(self, value: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value of the case."""
        return value

    def offsets(self, value: Any) -> Any:  # noqa: ANN401 - an offset, a list of offsets or of such lists
        """Return offsets, each in the form of that of the case."""
        if isinstance(value, list):
            return [self.offsets(one) for one in value]
        if not self.by:
            return value
        number = int(value)
        if number < 0 or any(number < border <= number + self.by for border in BORDERS):
            raise NoTwinError(value)
        return type(value)(number + self.by)

    def name(self, value: str) -> str:
        """Return the name of a file."""
        found = FILE.fullmatch(value)
        if found is None:
            if value in PLAIN_NAMES:
                return value
            raise NoTwinError(value)
        directory, base, kind, suffix = found.groups()
        return f"{directory}{self.offsets(int(base)):020}{kind}{suffix}"

    def path(self, value: str) -> str:
        """Return the path of a part of an answer, with the names of files in it."""
        return BASE_OFFSET.sub(lambda found: f"{self.offsets(int(found[0])):020}", value)

    def names(self, value: list[str]) -> list[str]:
        """Return names of files."""
        return [self.name(one) for one in value]

    def structure(self, value: Any) -> Any:  # noqa: ANN401 - an object, a list of them, or values of the case
        """Return an object or a list."""
        if isinstance(value, list):
            return [self.structure(one) for one in value]
        return self.part(value) if isinstance(value, dict) else value

    def files(self, value: dict[str, str | None]) -> dict[str, str | None]:
        """Return files with their names."""
        return {self.name(name): data and self.file(name, data) for name, data in value.items()}

    def file(self, name: str, data: str) -> str:
        """Return the content of a file in hexadecimal digits."""
        found = FILE.fullmatch(name)
        kind = found.group(3) if found else name
        made = FILES.get(kind)
        return data if made is None else made(self, data)

    def log(self, data: str) -> str:
        """Return the bytes of a log."""
        content = bytes.fromhex(data)
        if self.letters:
            content = with_other_letters(content, self.letters, self.checksums)
        return moved_log(content, self.offsets, self.later_ms).hex()

    def time_index(self, data: str) -> str:
        """Return the bytes of a time index, whose offsets are relative to its name."""
        if not self.later_ms:
            return data
        entries = TIME_ENTRY.iter_unpack(bytes.fromhex(data))
        return b"".join(TIME_ENTRY.pack(timestamp + self.later_ms, offset) for timestamp, offset in entries).hex()

    def transaction_index(self, data: str) -> str:
        """Return the bytes of a transaction index."""
        entries = ABORTED.iter_unpack(bytes.fromhex(data))
        moved = [(version, producer, *self.offsets(list(offsets))) for version, producer, *offsets in entries]
        return b"".join(ABORTED.pack(*entry) for entry in moved).hex()

    def snapshot(self, data: str) -> str:
        """Return the bytes of a producer snapshot, with its checksum."""
        content = bytes.fromhex(data)
        version, checksum, count = SNAPSHOT_HEAD.unpack_from(content)
        if checksum != crc32c(content[SNAPSHOT_COVERED:]):
            raise NoTwinError(data)
        entries = PRODUCER.iter_unpack(content[SNAPSHOT_HEAD.size :])
        moved = b"".join(PRODUCER.pack(*self._producer(*entry)) for entry in entries)
        covered = content[SNAPSHOT_COVERED : SNAPSHOT_HEAD.size] + moved
        return (SNAPSHOT_HEAD.pack(version, crc32c(covered), count) + moved).hex()

    def _producer(self, *entry: int) -> tuple[int, ...]:
        """Return an entry of a snapshot: its last offset, and the first one of an open transaction, if there is one."""
        *head, last_offset, delta, timestamp, epoch, first_offset = entry
        open_from = first_offset if first_offset == -1 else self.offsets(first_offset)
        return (
            *head,
            last_offset if last_offset == -1 else self.offsets(last_offset),
            delta,
            timestamp,
            epoch,
            open_from,
        )

    def epochs(self, data: str) -> str:
        """Return the text of the checkpoint of leader epochs."""
        found = EPOCHS.fullmatch(bytes.fromhex(data).decode("latin-1"))
        if found is None:
            raise NoTwinError(data)
        lines = [line.split(" ") for line in found.group(2).splitlines()]
        return (found.group(1) + "".join(f"{epoch} {self.offsets(start)}\n" for epoch, start in lines)).encode().hex()

    def checkpoints(self, value: dict[str, str | None]) -> dict[str, str | None]:
        """Return the checkpoints of a log directory, by name."""
        return {name: data and self.checkpoint(data) for name, data in value.items()}

    def checkpoint(self, data: str) -> str:
        """Return the text of a checkpoint of partitions: version, count, then topic, partition and offset a line."""
        version, count, *lines = bytes.fromhex(data).decode("latin-1").splitlines()
        moved = [f"{line.rpartition(' ')[0]} {self.offsets(int(line.rpartition(' ')[2]))}" for line in lines]
        return "".join(f"{line}\n" for line in (version, count, *moved)).encode("latin-1").hex()

    def data(self, value: str) -> str:
        """Return the bytes that a request or an entry is about: a log, or the file that `parse` reads."""
        return self.file(self.case.request.get("name", ""), value) if self.case.op == "parse" else self.log(value)

    def records(self, value: Any) -> Any:  # noqa: ANN401 - records, or batches in hexadecimal digits
        """Return records, or the bytes of batches to append."""
        if isinstance(value, str):
            return self.log(value)
        return [self.records(one) if isinstance(one, str) else self.part(one) for one in value]

    def entries(self, value: list[Any]) -> list[Any]:
        """Return the entries that a leader writes, or those of a parsed file."""
        at = ENTRY_OFFSETS.get(self.case.request.get("kind", ""))
        if at is None:
            return [self.part(one) for one in value]
        return [[self.offsets(one) if number == at else one for number, one in enumerate(entry)] for entry in value]

    def leader_epochs(self, value: list[list[Any]]) -> list[list[Any]]:
        """Return epochs with their first offsets."""
        return [[epoch, self.offsets(start)] for epoch, start in value]

    def payload(self, value: Any) -> Any:  # noqa: ANN401 - hexadecimal digits, or the digest of a long value
        """Return a key or a value."""
        if not self.letters:
            return value
        if not isinstance(value, str):
            raise NoTwinError(value)
        return bytes.fromhex(value).translate(self.letters).hex()

    def headers(self, value: list[list[str | None]]) -> list[list[str | None]]:
        """Return headers: their keys stay."""
        return [[key, item and self.payload(item)] for key, item in value]

    def checksum(self, value: int) -> int:
        """Return the checksum of a batch."""
        return self.checksums.get(value, value)

    def position(self, value: int | str) -> int | str:
        """Return a position in a file; the position of a consumer is an offset, as text."""
        return self.offsets(value) if isinstance(value, str) else value


FILES: Final[dict[str, Callable[[_Maker, str], str]]] = {
    ".log": _Maker.log,
    ".timeindex": _Maker.time_index,
    ".txnindex": _Maker.transaction_index,
    ".snapshot": _Maker.snapshot,
    "leader-epoch-checkpoint": _Maker.epochs,
}
"""What is made of the content of files, by kind; of others, it stays."""
MADE: Final[dict[str, Callable[[_Maker, Any], Any]]] = {
    **dict.fromkeys(FIELDS["same"].split(), _Maker.same),
    **dict.fromkeys(FIELDS["offsets"].split(), _Maker.offsets),
    **dict.fromkeys(FIELDS["structures"].split(), _Maker.structure),
    **dict.fromkeys(("name", "file"), _Maker.name),
    **dict.fromkeys(("names", "deleted"), _Maker.names),
    **dict.fromkeys(("key", "value"), _Maker.payload),
    "headers": _Maker.headers,
    "crc": _Maker.checksum,
    "files": _Maker.files,
    "checkpoints": _Maker.checkpoints,
    "data": _Maker.data,
    "log": _Maker.log,
    "records": _Maker.records,
    "entries": _Maker.entries,
    "leaderEpochs": _Maker.leader_epochs,
    "position": _Maker.position,
}
