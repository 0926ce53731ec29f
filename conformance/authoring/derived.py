"""Family 51: cases that follow from the declarations, not from somebody's ideas.

For each field of each structure in ``seglog_format/schema`` there are the limits of its type and of the smaller types
in which a program might keep it. `LIMITS` has the fields with fewer values, and `WITHOUT` those without such cases; both
have the reason. `derived_logs` puts the same values into logs, for the operations on directories.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.summary import summary

from authoring.batches import CONTROL, HEADER_SIZE, LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import Basis, Family, Json, may, must
from authoring.control import MARKER, control_key, empty, marker_value
from authoring.derived_logs import SCALED, add_logs, add_sized, compressed
from authoring.derived_scenarios import derived_scenarios
from authoring.encodings import add_encoding
from authoring.messages import Msg
from authoring.primitives import crc32c, sized, varint
from authoring.scenario_cases import add_kept
from authoring.segments import aborted, name_of, time_entry
from seglog_format.schema import checkpoints, control_record, message_set, partition_directory, producer_snapshot
from seglog_format.schema.fields import layout
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.record import Record, RecordHeader
from seglog_format.schema.record_batch import RecordBatchHeader
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from construct import Struct

FLAGS: Final[dict[str, Json]] = {
    "FIELD_LIMITS": {
        "effect": "A number that is kept in fewer bits than its field, or as floating point, is another number: an offset, a producer, a length that nobody wrote.",
        "links": [],
    }
}
FLAG: Final = tuple(FLAGS)
SOURCE: Final = "the declarations in seglog_format/schema"

# -- the limits of a type ---------------------------------------------------------------------------------------------

INT64_MAX: Final = 2**63 - 1
INT32_MAX: Final = 2**31 - 1
NOW: Final = 1_700_000_000_000
LAST_OFFSET: Final = INT64_MAX - 1
"""The greatest offset that has one after it."""
BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "uint32": 32, "int64": 64}


def around(bits: int) -> tuple[int, ...]:
    """Return the limits of the signed and of the unsigned number of so many bits, and their neighbours."""
    half = 1 << bits - 1
    return (-half - 1, -half, half - 1, half, 2 * half - 1, 2 * half)


def limits(kind: str) -> dict[str, tuple[int, ...]]:
    """Return the values of a type that are tried, by the type whose limits they are.

    Args:
        kind: of a field, such as ``int32``; ``length`` for that of bytes, ``count`` for that of records or headers,
            which are of 32 bits.
    """
    if kind == "length":
        above = 2**16 + 1, 100_000
        return {
            "empty": (-1, 0),
            "8-bits": around(8),
            "15-bits": (32767, 32768),
            "16-bits": (65535, 65536),
            "more": above,
        }
    if kind == "count":
        return {
            "empty": (0,),
            "8-bits": (127, 128, 255, 256),
            "9-bits": (257, 300),
            "16-bits": (65536,),
            "more": (65537,),
        }
    bits = BITS[kind]
    own = (0, 2**bits - 1) if kind.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
    smaller = {f"{fewer}-bits": around(fewer) for fewer in (8, 16, 32) if bits // 4 <= fewer < bits}
    if kind.startswith("u"):
        smaller["31-bits"] = (INT32_MAX, INT32_MAX + 1)
    if bits == BITS["int64"]:
        smaller["53-bits"] = (2**53, 2**53 + 1)
    return {**smaller, "whole": own}


@dataclass(frozen=True)
class Field:
    """A field of a declaration.

    Attributes:
        structure: its name.
        name: of the field.
        kind: its type, as `limits` takes it.
        rule: the first requirement of its declaration.
        lowest: the least value that is tried.
        highest: the greatest.
    """

    structure: str
    name: str
    kind: str
    rule: str
    lowest: int
    highest: int

    def groups(self) -> Iterator[tuple[str, list[int]]]:
        """Yield the values that are tried, by the type whose limits they are."""
        for name, values in limits(self.kind).items():
            if name == "whole":
                values = (max(self.lowest, values[0]), min(self.highest, values[1]))  # noqa: PLW2901
            found = sorted({value for value in values if self.lowest <= value <= self.highest})
            if found:
                yield name, found

    @property
    def values(self) -> set[int]:
        """All of them."""
        return {value for _, group in self.groups() for value in group}

    def case(self, op: str, group: str) -> str:
        """Return the name of the case of some values."""
        return f"{op}-{re.sub('(?<=[a-z])(?=[A-Z])', '-', self.structure).lower()}-{self.name.lower()}-{group}".replace(
            "_", "-"
        )

    def why(self, group: str) -> str:
        """Return the reason for it."""
        size = {"whole": "its whole type", "empty": "nothing", "more": "16 bits and more"}.get(
            group, group.replace("-", " ")
        )
        return f"The field {self.name.replace('_', ' ')} of {self.structure} at the limits of {size}: no bit is lost."


STRUCTURES: Final[dict[str, tuple[Struct, str]]] = {
    "RecordBatchHeader": (RecordBatchHeader, "SEG-BAT-001"),
    "Record": (Record, "SEG-REC-006"),
    "RecordHeader": (RecordHeader, "SEG-REC-010"),
    "MessageV0": (message_set.MessageV0, "SEG-MSG-001"),
    "MessageV1": (message_set.MessageV1, "SEG-MSG-002"),
    "ControlRecordKey": (control_record.ControlRecordKey, "SEG-CTL-001"),
    "EndTransactionMarker": (control_record.EndTransactionMarker, "SEG-CTL-004"),
    "OffsetIndexEntry": (OffsetIndexEntry, "SEG-IDX-011"),
    "TimeIndexEntry": (TimeIndexEntry, "SEG-TIX-010"),
    "TransactionIndexEntry": (TransactionIndexEntry, "SEG-TXN-009"),
    "ProducerSnapshotHeader": (producer_snapshot.ProducerSnapshotHeader, "SEG-PSN-007"),
    "ProducerStateEntry": (producer_snapshot.ProducerStateEntry, "SEG-PSN-007"),
    "CheckpointHeader": (checkpoints.CheckpointHeader, "SEG-CKP-002"),
    "OffsetCheckpointEntry": (checkpoints.OffsetCheckpointEntry, "SEG-CKP-004"),
    "LeaderEpochCheckpointEntry": (checkpoints.LeaderEpochCheckpointEntry, "SEG-CKP-004"),
    "PartitionMetadata": (checkpoints.PartitionMetadata, "SEG-CKP-009"),
    "SegmentFileName": (partition_directory.SegmentFileName, "SEG-PDR-005"),
    "MetadataSnapshotFileName": (partition_directory.MetadataSnapshotFileName, "SEG-PDR-015"),
    "PartitionDirectoryName": (partition_directory.PartitionDirectoryName, "SEG-PDR-001"),
}
"""The declarations of the format, each with the rule for all its fields; `APART` has the others."""
APART: Final = {
    "EntryPrefix": "the first fields of RecordBatchHeader, MessageV0 and MessageV1",
    "MessageV0Header": "the first fields of MessageV0",
    "MessageV1Header": "the first fields of MessageV1",
    "BytesLength": "the length of key and value of MessageV0 and MessageV1",
    "ProducerSnapshot": "ProducerSnapshotHeader and ProducerStateEntry",
    "CheckpointVersion": "the first field of CheckpointHeader",
    "OffsetCheckpoint": "CheckpointHeader and OffsetCheckpointEntry",
    "LeaderEpochCheckpoint": "CheckpointHeader and LeaderEpochCheckpointEntry",
    "LeaderChangeV0": "a message of Kafka's protocol: family 18 has its fields",
    "LeaderChangeV1": "a message of Kafka's protocol: family 18 has its fields",
    "SnapshotHeader": "a message of Kafka's protocol: family 18 has its fields",
    "SnapshotFooter": "a message of Kafka's protocol: family 18 has its fields",
    "KRaftVersion": "a message of Kafka's protocol: family 18 has its fields",
    "KRaftVoters": "a message of Kafka's protocol: family 18 has its fields",
    "VersionPrefix": "the first field of messages in Kafka's own topics: family 18",
    "MetadataFrame": "what is around messages in the metadata log: family 18",
    "MetaProperties": "text of names and values: family 43 has the limits of its node id",
    "CleanShutdown": "text in JSON: family 43",
    "QuorumState": "text in JSON: family 43",
    "GzipMemberHeader": "a header of a compressed stream, which is not Kafka's: family 10",
    "GzipMemberTrailer": "the end of a compressed stream, which is not Kafka's: family 10",
    "XerialHeader": "a header of a compressed stream: family 11",
    "XerialBlock": "a header of a compressed block: family 11, and the payloads of many blocks here",
    "Lz4FrameHeader": "a header of a compressed stream, which is not Kafka's: families 13 and 14",
    "Lz4BlockHeader": "a header of a compressed block: family 13, and the payloads of many blocks here",
    "ZstdFrameHeader": "a header of a compressed stream, which is not Kafka's: family 15",
    "ZstdBlockHeader": "a header of a compressed block: family 15, and the payloads of many blocks here",
    "ZstdSkippableHeader": "a header of a frame without content: family 15",
}
"""Declarations whose fields are those of others, or have their cases elsewhere."""
LIMITS: Final[dict[tuple[str, str], tuple[int, int, str]]] = {
    ("RecordBatchHeader", "base_offset"): (0, LAST_OFFSET, "an offset is not negative and has one after it"),
    ("RecordBatchHeader", "batch_length"): (127, 65536, "a header takes 49 bytes; more than 64 KiB are other cases"),
    ("RecordBatchHeader", "partition_leader_epoch"): (-1, INT32_MAX, "-1 is none"),
    ("RecordBatchHeader", "last_offset_delta"): (0, INT32_MAX, "a batch ends where it begins, or later"),
    ("RecordBatchHeader", "producer_id"): (0, INT64_MAX, "-1 is none, and then nothing else of a producer counts"),
    ("RecordBatchHeader", "producer_epoch"): (0, 2**15 - 1, "-1 is none"),
    ("RecordBatchHeader", "base_sequence"): (0, INT32_MAX, "-1 is none"),
    ("RecordBatchHeader", "records_count"): (0, 65537, "more records are in family 47"),
    ("Record", "length"): (7, 65536, "a record takes 7 bytes; more than 64 KiB are cases of its value"),
    ("Record", "offset_delta"): (0, INT32_MAX, "an offset is not below that of its batch"),
    ("Record", "headers_count"): (0, 65537, "more than 16 bits are enough"),
    ("RecordHeader", "key"): (0, 100_000, "it is not null"),
    ("MessageV0", "offset"): (0, LAST_OFFSET, "an offset is not negative and has one after it"),
    ("MessageV1", "offset"): (0, LAST_OFFSET, "an offset is not negative and has one after it"),
    ("MessageV0", "message_size"): (127, 65536, "more than 64 KiB are cases of its value"),
    ("MessageV1", "message_size"): (127, 65536, "more than 64 KiB are cases of its value"),
    ("MessageV1", "timestamp_ms"): (-1, INT64_MAX, "-1 is none"),
    ("ControlRecordKey", "version"): (0, 2**15 - 1, "a negative version is refused"),
    ("EndTransactionMarker", "version"): (0, 2**15 - 1, "a negative version is refused"),
    ("EndTransactionMarker", "coordinatorEpoch"): (0, INT32_MAX, "an epoch is not negative"),
    ("OffsetIndexEntry", "relative_offset"): (1, INT32_MAX, "not negative; 0 may also be preallocation"),
    ("OffsetIndexEntry", "position"): (0, INT32_MAX, "a position is not negative"),
    ("TimeIndexEntry", "timestamp_ms"): (0, INT64_MAX, "-1 is none, and is never written"),
    ("TimeIndexEntry", "relative_offset"): (1, INT32_MAX, "not negative; 0 may also be preallocation"),
    ("TransactionIndexEntry", "producer_id"): (0, INT64_MAX, "-1 is none"),
    ("TransactionIndexEntry", "first_offset"): (0, LAST_OFFSET, "an offset is not negative"),
    ("TransactionIndexEntry", "last_offset"): (0, LAST_OFFSET, "an offset is not negative"),
    ("TransactionIndexEntry", "last_stable_offset"): (0, INT64_MAX, "an offset is not negative"),
    ("ProducerSnapshotHeader", "count"): (0, 256, "65,536 producers are 3 MB"),
    ("ProducerStateEntry", "producer_id"): (0, INT64_MAX, "-1 is none"),
    ("ProducerStateEntry", "producer_epoch"): (0, 2**15 - 1, "-1 is none"),
    ("ProducerStateEntry", "last_sequence"): (0, INT32_MAX, "-1 is none"),
    ("ProducerStateEntry", "last_offset"): (0, LAST_OFFSET, "-1 is none"),
    ("ProducerStateEntry", "offset_delta"): (0, INT32_MAX, "a batch ends where it begins, or later"),
    ("ProducerStateEntry", "timestamp_ms"): (-1, INT64_MAX, "-1 is none"),
    ("ProducerStateEntry", "coordinator_epoch"): (-1, INT32_MAX, "-1 is none"),
    ("ProducerStateEntry", "current_txn_first_offset"): (0, LAST_OFFSET, "-1 is none"),
    ("CheckpointHeader", "entry_count"): (0, 256, "one line for each: 65,536 lines are larger than all other files"),
    ("OffsetCheckpointEntry", "partition"): (0, INT32_MAX, "a partition is not negative"),
    ("OffsetCheckpointEntry", "offset"): (0, INT64_MAX, "a negative one is unusual, and a case of family 43"),
    ("LeaderEpochCheckpointEntry", "epoch"): (0, INT32_MAX, "an epoch is not negative"),
    ("LeaderEpochCheckpointEntry", "start_offset"): (0, INT64_MAX, "an offset is not negative"),
    ("PartitionMetadata", "version"): (0, INT32_MAX, "a negative version is refused"),
    ("SegmentFileName", "base_offset"): (0, INT64_MAX, "an offset is not negative"),
    ("MetadataSnapshotFileName", "end_offset"): (0, INT64_MAX, "an offset is not negative"),
    ("MetadataSnapshotFileName", "epoch"): (0, INT32_MAX, "an epoch is not negative"),
    ("PartitionDirectoryName", "partition"): (0, INT32_MAX, "a partition is not negative"),
}
"""The least and the greatest value of a field that is tried, and why others are not."""
WITHOUT: Final = {
    ("RecordBatchHeader", "magic"): "2 in all; others are family 28",
    ("RecordBatchHeader", "attributes"): "bits, and no number: families 9, 18 to 20 and 35",
    ("Record", "start"): "no stored field",
    ("Record", "end"): "no stored field",
    ("Record", "headers"): "the fields of RecordHeader",
    ("MessageV0", "magic"): "0 in all; others are family 28",
    ("MessageV1", "magic"): "1 in all; others are family 28",
    ("MessageV0", "attributes"): "bits, and no number: families 21, 22 and 35",
    ("MessageV1", "attributes"): "bits, and no number: families 21, 22 and 35",
    ("Record", "attributes"): "bits, and no number: family 21",
    ("TransactionIndexEntry", "version"): "0; others are family 43",
    ("ProducerSnapshotHeader", "version"): "1; others are family 43",
    ("CheckpointHeader", "version"): "0; others are family 43",
    ("OffsetCheckpointEntry", "topic"): "text",
    ("OffsetCheckpointEntry", "rest"): "nothing",
    ("LeaderEpochCheckpointEntry", "rest"): "nothing",
    ("PartitionMetadata", "topic_id"): "text of one length",
    ("SegmentFileName", "kind"): "one of a few texts",
    ("SegmentFileName", "suffix"): "one of a few texts",
    ("MetadataSnapshotFileName", "kind"): "one of a few texts",
    ("MetadataSnapshotFileName", "suffix"): "one of a few texts",
    ("PartitionDirectoryName", "topic"): "text",
    ("PartitionDirectoryName", "unique"): "text of one length",
    ("PartitionDirectoryName", "state"): "one of a few texts",
}
"""Fields without a number that could be too large, and why."""
TEXT_KINDS: Final = {
    "entry_count": "int32",
    "partition": "int32",
    "epoch": "int32",
    "version": "int32",
    "offset": "int64",
    "start_offset": "int64",
    "base_offset": "int64",
    "end_offset": "int64",
}
"""Types of numbers that are written as text, which is of any length."""


def kind_of(name: str, declared: str) -> str:
    """Return the type of a field as `limits` takes it."""
    if name in {"records_count", "headers_count"}:
        return "count"
    if name in {"key", "value", "batch_length", "message_size", "length"}:
        return "length"
    if declared.startswith("varint"):
        return f"int{declared.removeprefix('varint')}"
    return declared if declared in BITS else TEXT_KINDS[name]


def fields(structure: str) -> list[Field]:
    """Return the fields of a structure that have cases."""
    found = []
    for row in layout(STRUCTURES[structure][0]):
        if (structure, row.name) not in WITHOUT:
            kind = kind_of(row.name, row.type)
            whole = limits(kind).get("whole", (-1, 100_000))
            lowest, highest, _ = LIMITS.get((structure, row.name), (*whole, ""))
            found.append(Field(structure, row.name, kind, row.requirements[0], lowest, highest))
    return found


def basis_of(field: Field, **more: Any) -> Basis:  # noqa: ANN401 - fields of Basis
    """Return the terms of the cases of a field: its own rule first, and that of its structure."""
    rules = tuple(dict.fromkeys((field.rule, STRUCTURES[field.structure][1])))
    return must(*rules, flags=FLAG, **more)


# -- what a recipe makes shorter --------------------------------------------------------------------------------------

LONG: Final = 1024
"""Characters of hex, or entries of a list, from which on a recipe is tried."""
RUN: Final = re.compile(rb"(.{1,8}?)\1{31,}", re.DOTALL)


def shortened(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return the same value of a case with recipes for what repeats itself."""
    if isinstance(value, dict):
        return {name: shortened(item) for name, item in value.items()}
    if isinstance(value, list):
        if len(value) > LONG and all(item == value[0] for item in value):
            return {"items": value[:1], "times": len(value)}
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value) > LONG and re.fullmatch("[0-9a-f]+", value):
        pieces = _pieces(bytes.fromhex(value))
        return {"pieces": pieces} if len(str(pieces)) < len(value) // 2 else value
    return value


def _pieces(data: bytes) -> list[Any]:
    pieces: list[Any] = []
    at = 0
    for run in RUN.finditer(data):
        unit = run[1]
        pieces += [data[at : run.start()].hex()] if run.start() > at else []
        pieces.append([unit.hex(), len(run[0]) // len(unit)])
        at = run.end()
    return [*pieces, data[at:].hex()] if at < len(data) else pieces


# -- batches and records ----------------------------------------------------------------------------------------------


def solved(make: Callable[[bytes], bytes], position: int, wanted: int) -> bytes:
    """Return four bytes with which a structure has a certain checksum.

    A checksum is linear in the bits that it covers, so one linear equation over 32 bits gives the bytes.

    Args:
        make: makes the structure from the four bytes.
        position: of the checksum in it.
        wanted: the checksum.
    """

    def checksum(number: int) -> int:
        return int.from_bytes(make(number.to_bytes(4, "big"))[position : position + 4], "big")

    rest = wanted ^ checksum(0)
    rows: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        effect, source = checksum(1 << bit) ^ checksum(0), 1 << bit
        while effect and (top := effect.bit_length()) in rows:
            effect, source = effect ^ rows[top][0], source ^ rows[top][1]
        if effect:
            rows[effect.bit_length()] = effect, source
    answer = 0
    while rest:
        effect, source = rows[rest.bit_length()]
        rest, answer = rest ^ effect, answer ^ source
    return answer.to_bytes(4, "big")


def batch_of(size: int, base: int = 0, **more: Any) -> Batch:  # noqa: ANN401 - fields of Batch
    """Return a batch of one record that takes so many bytes.

    Raises:
        ValueError: there is none.
    """
    for key in (b"k", b"kk", b"kkk"):
        for length in range(max(size - HEADER_SIZE - 20, 0), size):
            batch = Batch(base=base, recs=(Rec(key=key, value=b"v" * length),), **more)
            record = len(batch.recs[0].body())
            if HEADER_SIZE + len(varint(record)) + record == size:
                return batch
    raise ValueError(size)


def record_of(length: int) -> Rec:
    """Return a record whose length field has a value."""
    if length < len(Rec(key=b"", value=b"").body()):
        return Rec(key=None, value=b"")
    for key in (None, b"k", b"kk"):
        for size in range(max(length - 12, 0), length):
            rec = Rec(key=key, value=b"v" * size)
            if len(rec.body()) == length:
                return rec
    return Rec(key=None, value=b"v" * (length - 6))


def _run(length: int) -> bytes | None:
    return None if length < 0 else b"r" * length


def header_units(name: str, values: Sequence[int]) -> list[Batch]:
    """Return batches with some values of a field of the header; each begins where the one before ends."""
    units: list[Batch] = []
    for value in values:
        base = units[-1].next_offset if units else 0
        units.append(_header_unit(name, value, base))
    return units


def _header_unit(name: str, value: int, base: int) -> Batch:
    if name == "crc":
        four = solved(lambda four: Batch(base=base, recs=(Rec(value=four),)).encoded(), 17, value)
        return Batch(base=base, recs=(Rec(value=four),))
    make: dict[str, Callable[[], Batch]] = {
        "base_offset": lambda: Batch(base=value),
        "batch_length": lambda: batch_of(value + 12, base),
        "partition_leader_epoch": lambda: Batch(base=base, leader_epoch=value),
        "last_offset_delta": lambda: Batch(base=base, last_delta=value),
        "base_timestamp_ms": lambda: Batch(base=base, base_timestamp=value),
        "max_timestamp_ms": lambda: Batch(base=base, attributes=LOG_APPEND_TIME, max_timestamp=value),
        "records_count": lambda: Batch(base=base, recs=(Rec(),) * value) if value else empty(base, 0),
    }
    if name in make:
        return make[name]()
    producer = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 5, name: value}
    return Batch(base=base, recs=(Rec(), Rec()), **producer)  # type: ignore[arg-type]


def record_units(name: str, values: Sequence[int]) -> list[Batch]:
    """Return batches with some values of a field of a record, or of its headers."""
    if name == "timestamp_delta":
        batches: list[Batch] = []
        for value in values:
            start = 0 if value >= 0 else NOW if value > -NOW else INT64_MAX
            base = batches[-1].next_offset if batches else 0
            batches.append(Batch(base=base, base_timestamp=start, recs=(Rec(), Rec(time=value))))
        return batches
    if name == "offset_delta":
        return [Batch(recs=tuple(Rec(delta=value) for value in values))]
    make: dict[str, Callable[[int], Rec]] = {
        "length": record_of,
        "key": lambda value: Rec(key=_run(value)),
        "value": lambda value: Rec(value=_run(value)),
        "headers_count": lambda value: Rec(headers=((b"h", b""),) * value),
        "header-key": lambda value: Rec(headers=((b"a", b"1"), (b"r" * value, b"2"), (b"z", b"3"))),
        "header-value": lambda value: Rec(headers=((b"a", b"1"), (b"r", _run(value)), (b"z", b"3"))),
    }
    recs = [rec for value in values for rec in (make[name](value), Rec(key=b"between"))]
    return [Batch(recs=tuple(_laid(replace(rec, delta=at)) for at, rec in enumerate(recs)))]


def _laid(rec: Rec) -> Rec:
    """Return a record with its bytes, which are many; those of equal headers are made at once."""
    if len(rec.headers) <= MANY:
        return replace(rec, raw=rec.encoded())
    body = bytes(1) + varint(rec.time) + varint(rec.delta or 0) + sized(rec.key) + sized(rec.value)
    one = b"".join(map(sized, rec.headers[0]))
    return replace(rec, raw=sized(body + varint(len(rec.headers)) + one * len(rec.headers)))


def message_units(magic: int, name: str, values: Sequence[int]) -> list[Msg]:
    """Return messages with some values of a field."""
    return [_message(magic, name, value, at) for at, value in enumerate(values)]


def _message(magic: int, name: str, value: int, offset: int) -> Msg:
    plain = Msg(magic=magic, offset=offset)
    match name:
        case "offset":
            return replace(plain, offset=value)
        case "message_size":
            return replace(plain, value=b"v" * (value - len(replace(plain, value=b"").encoded()) + 12))
        case "crc":
            four = solved(lambda four: replace(plain, value=four).encoded(), 12, value)
            return replace(plain, value=four)
        case "timestamp_ms":
            return replace(plain, timestamp=value)
        case _:
            return replace(plain, **{name: _run(value)})


def control_units(structure: str, name: str, values: Sequence[int]) -> list[Batch]:
    """Return end markers, or control records of other types, with some values of a field."""
    units = []
    for base, value in enumerate(values):
        key = control_key(1, version=value if (structure, name) == ("ControlRecordKey", "version") else 0)
        known: tuple[tuple[str, Any], ...] = (("control", "COMMIT"), ("coordinatorEpoch", 7))
        content = marker_value(7)
        if name == "type":
            key, content, known = control_key(value), b"", (("control", "UNKNOWN"),)
        elif structure == "EndTransactionMarker":
            content = marker_value(value) if name == "coordinatorEpoch" else marker_value(7, version=value)
            known = (("control", "COMMIT"), ("coordinatorEpoch", value if name == "coordinatorEpoch" else 7))
        rec = Rec(key=key, value=content, control=known)
        producer = {} if name == "type" else {"producer_id": 9, "producer_epoch": 2}
        units.append(Batch(base=base, recs=(rec,), attributes=CONTROL if name == "type" else MARKER, **producer))
    return units


def units_of(field: Field, values: Sequence[int]) -> Sequence[Batch | Msg]:
    """Return entries of a log with some values of a field."""
    match field.structure:
        case "RecordBatchHeader":
            return header_units(field.name, values)
        case "Record":
            return record_units(field.name, values)
        case "RecordHeader":
            return record_units(f"header-{field.name}", values)
        case "MessageV0" | "MessageV1":
            return message_units(int(field.structure[-1]), field.name, values)
        case _:
            return control_units(field.structure, field.name, values)


CONTROLS: Final = ("ControlRecordKey", "EndTransactionMarker")
IN_LOGS: Final = ("RecordBatchHeader", "Record", "RecordHeader", "MessageV0", "MessageV1", *CONTROLS)
"""The structures that a log consists of."""
NOT_ASKED_TO_ENCODE: Final = {
    ("ControlRecordKey", "version"): "an encoder is asked for records of known types and versions alone",
    ("ControlRecordKey", "type"): "an encoder is asked for records of known types and versions alone",
    ("EndTransactionMarker", "version"): "an encoder is asked for records of known types and versions alone",
}
TIMES: Final = ("base_timestamp_ms", "max_timestamp_ms", "timestamp_delta", "timestamp_ms")
FAR: Final = ("53-bits", "whole")
"""Times that are beyond every calendar: an encoder may refuse them, and has no negative ones to write."""
MANY: Final = 1000
"""Records from which on an answer is a summary."""


def is_at_scale(op: str, field: Field, values: Sequence[int]) -> bool:
    """Tell whether values of a field are so large that only the family of scale has them."""
    slow = {"decode": ("records_count",), "encode": ("records_count", "headers_count")}
    return field.name in slow[op] and max(values) > MANY


def decoded(family: Family) -> None:
    """Add what a decoder reads: each field of a log at its limits."""
    for structure in IN_LOGS:
        for field in fields(structure):
            for group, values in field.groups():
                basis = basis_of(field, needs=("control",) if structure in CONTROLS else ())
                if field.name == "type":
                    basis = may("SEG-CTL-003", needs=("control",), flags=FLAG)
                name, why = field.case("decode", group), field.why(group)
                if is_at_scale("decode", field, values):
                    continue
                units = units_of(field, values)
                more = units[-1].next_offset < LAST_OFFSET
                family.valid(name, why, basis, *units, more=more)


def encoded(family: Family) -> None:
    """Add what an encoder writes: each field of a log at its limits."""
    for structure in IN_LOGS:
        for field in fields(structure):
            if (structure, field.name) in NOT_ASKED_TO_ENCODE:
                continue
            if field.name in {"base_timestamp_ms", "max_timestamp_ms"}:
                field = replace(field, lowest=0)  # noqa: PLW2901 - nobody is asked to write a negative time
            for group, values in field.groups():
                name, why, basis = field.case("encode", group), field.why(group), basis_of(field)
                if is_at_scale("encode", field, values):
                    continue
                basis = replace(basis, level="should") if field.name in TIMES and group in FAR else basis
                units = [_as_asked(field, unit) for unit in units_of(field, values)]
                add_encoding(family, name, why, basis, *units)


def _as_asked(field: Field, unit: Batch | Msg) -> Batch | Msg:
    """Return a unit of which every byte follows from what an encoder is asked for."""
    if isinstance(unit, Msg):
        return replace(unit, timestamp=-1) if unit.magic == 0 else unit
    if field.name == "max_timestamp_ms":
        time = unit.newest
        return Batch(base=unit.base, base_timestamp=min(time, 0), recs=(Rec(), Rec(time=max(time, 0))))
    return unit


# -- files beside the log ---------------------------------------------------------------------------------------------

PARSED: Final = {
    "OffsetIndexEntry": ("index", name_of(100, ".index")),
    "TimeIndexEntry": ("timeindex", name_of(100, ".timeindex")),
    "TransactionIndexEntry": ("txnindex", name_of(0, ".txnindex")),
    "ProducerSnapshotHeader": ("snapshot", name_of(5, ".snapshot")),
    "ProducerStateEntry": ("snapshot", name_of(5, ".snapshot")),
    "CheckpointHeader": ("checkpoint", "leader-epoch-checkpoint"),
    "OffsetCheckpointEntry": ("checkpoint", "recovery-point-offset-checkpoint"),
    "LeaderEpochCheckpointEntry": ("checkpoint", "leader-epoch-checkpoint"),
    "PartitionMetadata": ("metadata", "partition.metadata"),
    "SegmentFileName": ("name", ""),
    "MetadataSnapshotFileName": ("name", ""),
    "PartitionDirectoryName": ("name", ""),
}
"""The structures that are files or names, with the kind of `parse` and the name of such a file."""
OF_ENTRIES: Final = ("OffsetIndexEntry", "TimeIndexEntry", "TransactionIndexEntry", "ProducerStateEntry")
"""Those of which a file has one after the other."""
BASE: Final = 100
"""Base offset of the indexes."""
PRODUCER: Final = struct.Struct(">qhiqiqiq")
STATE_NAMES: Final = tuple(row.name for row in layout(STRUCTURES["ProducerStateEntry"][0]))
STATE: Final = dict(zip(STATE_NAMES, (9, 1, 4, 20, 0, 1000, 3, -1), strict=True))
TOPIC_ID: Final = "kLrBX-8RTpavUzNNZr7xRg"


def snapshot_file(states: Sequence[Sequence[int]], four: bytes = b"") -> bytes:
    """Return a producer snapshot; ``four`` bytes are the lower half of the timestamp of the last producer."""
    body = struct.pack(">i", len(states)) + b"".join(PRODUCER.pack(*state) for state in states)
    body = body[:-16] + four + body[-12:] if four else body
    return struct.pack(">hI", 1, crc32c(body)) + body


def reported_producers(data: bytes) -> Json:
    """Return what a reader answers of a snapshot."""
    producers = []
    for row in PRODUCER.iter_unpack(data[10:]):
        state = dict(zip(STATE_NAMES, row, strict=True))
        one: Json = {
            "producerId": str(state["producer_id"]),
            "producerEpoch": state["producer_epoch"],
            "coordinatorEpoch": state["coordinator_epoch"],
            "lastTimestamp": str(state["timestamp_ms"]),
        }
        if state["current_txn_first_offset"] != -1:
            one["currentTxnFirstOffset"] = str(state["current_txn_first_offset"])
        last = {
            "lastSequence": state["last_sequence"],
            "lastOffset": str(state["last_offset"]),
            "offsetDelta": state["offset_delta"],
            "timestamp": str(state["timestamp_ms"]),
        }
        producers.append({**one, "batches": [last]})
    return {"producers": producers}


def parsed(family: Family) -> None:
    """Add the files beside a log, and names: each field at its limits."""
    for structure, (kind, file_name) in PARSED.items():
        for field in fields(structure):
            for group, values in field.groups():
                for suffix, request, found in _files(field, values):
                    asked = {"kind": kind, "name": file_name, **request}
                    name = field.case("parse", group) + suffix
                    basis = basis_of(
                        field, needs=("parse:metadata-snapshot",) if structure == "MetadataSnapshotFileName" else ()
                    )
                    family.add(name, "parse", "valid", field.why(group), basis, request=asked, expect={"object": found})


def _files(field: Field, values: Sequence[int]) -> Iterator[tuple[str, Json, Json]]:
    """Yield files with some values of a field: what their cases add to the name, the request, and the answer."""
    if field.structure in OF_ENTRIES:
        yield ("", *_entries(field, values))
    elif field.structure == "LeaderEpochCheckpointEntry":
        yield ("", *_epochs([(value, at) for at, value in enumerate(values)] if field.name == "epoch" else list(enumerate(values))))  # fmt: skip
    else:
        for value in values:
            yield (f"-{value}", *_file(field, value))


def _file(field: Field, value: int) -> tuple[Json, Json]:
    """Return a file with a value of a field, or a name."""
    match field.structure:
        case "ProducerSnapshotHeader":
            data = _snapshot(field.name, value)
            return {"data": data.hex()}, reported_producers(data)
        case "CheckpointHeader":
            return _epochs([(at, at) for at in range(value)])
        case "OffsetCheckpointEntry":
            return _checkpoint([("t", value, 5) if field.name == "partition" else ("t", 1, value)])
        case "PartitionMetadata":
            text = f"version: {value}\ntopic_id: {TOPIC_ID}"
            return {"data": text.encode().hex()}, {"version": value, "topicId": TOPIC_ID}
        case _:
            return _name(field, value)


def _entries(field: Field, values: Sequence[int]) -> tuple[Json, Json]:
    """Return a file of entries, one for each value."""
    if field.structure == "OffsetIndexEntry":
        rows = [
            (value, 64 * at) if field.name == "relative_offset" else (at + 1, value) for at, value in enumerate(values)
        ]
        data = b"".join(struct.pack(">ii", *row) for row in rows)
        return {"data": data.hex()}, {"entries": [[str(BASE + offset), position] for offset, position in rows]}
    if field.structure == "TimeIndexEntry":
        rows = [
            (1000 + at, value) if field.name == "relative_offset" else (value, at + 1)
            for at, value in enumerate(values)
        ]
        data = b"".join(time_entry(*row) for row in rows)
        return {"data": data.hex()}, {"entries": [[str(time), str(BASE + offset)] for time, offset in rows]}
    if field.structure == "TransactionIndexEntry":
        names = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
        usual = {"producer_id": 9, "first_offset": 0, "last_offset": LAST_OFFSET, "last_stable_offset": 0}
        rows = [tuple({**usual, field.name: value}[name] for name in names) for value in values]
        if field.name == "last_offset":
            rows = [(9, 0, value, 0) for value in values]
        listed = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
        reported = [
            {"version": 0, **{name: str(value) for name, value in zip(listed, row, strict=True)}} for row in rows
        ]
        return {"data": b"".join(aborted(*row) for row in rows).hex()}, {"aborted": reported}
    states = [tuple({**STATE, "producer_id": at, field.name: value}.values()) for at, value in enumerate(values)]
    data = snapshot_file(states)
    return {"data": data.hex()}, reported_producers(data)


def _snapshot(name: str, value: int) -> bytes:
    if name == "count":
        return snapshot_file([tuple({**STATE, "producer_id": at}.values()) for at in range(value)])
    state = tuple(STATE.values())
    return snapshot_file([state], solved(lambda four: snapshot_file([state], four), 2, value))


def _checkpoint(rows: Sequence[tuple[str, int, int]]) -> tuple[Json, Json]:
    lines = "".join(f"{topic} {partition} {offset}\n" for topic, partition, offset in rows)
    reported = [[topic, partition, str(offset)] for topic, partition, offset in rows]
    return {"data": f"0\n{len(rows)}\n{lines}".encode().hex()}, {"version": 0, "entries": reported}


def _epochs(rows: Sequence[tuple[int, int]]) -> tuple[Json, Json]:
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in rows)
    reported = [[str(epoch), str(offset)] for epoch, offset in rows]
    return {"data": f"0\n{len(rows)}\n{lines}".encode().hex()}, {"version": 0, "entries": reported}


def _name(field: Field, value: int) -> tuple[Json, Json]:
    if field.structure == "PartitionDirectoryName":
        return {"name": f"topic-{value}"}, {"topic": "topic", "partition": value, "state": ""}
    if field.structure == "SegmentFileName":
        return {"name": name_of(value)}, {"kind": ".log", "baseOffset": str(value), "suffix": ""}
    end, epoch = (value, 3) if field.name == "end_offset" else (57, value)
    name = f"{end:020}-{epoch:010}.checkpoint"
    return {"name": name}, {"kind": ".checkpoint", "baseOffset": str(end), "suffix": ""}


def at_scale(family: Family) -> None:
    """Add to the family that takes minutes what is too large for this one: many records, and large blocks."""
    before = len(family.cases)
    basis = must("SEG-BAT-007", "SEG-BAT-008", flags=("SCALE",), needs=("magic:2",))
    for op in ("decode", "encode"):
        for field in (*fields("RecordBatchHeader"), *fields("Record")):
            for group, values in field.groups():
                for count in values if is_at_scale(op, field, values) else ():
                    if field.name == "records_count":
                        _many(family, f"{op}-{count}-records", op, field.why(group), basis, count)
                    else:
                        rule = must(field.rule, flags=("SCALE",))
                        add_encoding(family, f"encode-{count}-headers", field.why(group), rule, *units_of(field, [count]))  # fmt: skip

    def decode(name: str, why: str, basis: Basis, batch: Batch) -> None:
        family.valid(name, why, basis, batch)

    compressed(family, SCALED, decode)
    for case in family.cases[before:]:
        if "batches" in case["expect"]:
            _sum_up(case)
        case["request"], case["expect"] = shortened(case["request"]), shortened(case["expect"])


def _sum_up(case: Json) -> None:
    """Expect a summary instead of records."""
    batches = case["expect"]["batches"]
    reported = summary(batches)
    case["expect"] = {"summary": {"surfaced": reported, "hidden": reported}, "nextOffset": batches[-1]["nextOffset"]}
    if case["op"] == "decode":
        case["request"]["options"]["summary"] = True


def _many(family: Family, name: str, op: str, why: str, basis: Basis, count: int) -> None:
    """Add a batch of many records, which is reported by a summary."""
    start = NOW
    record = {"offset": "0", "timestamp": str(start), "key": None, "value": ""}
    records = [{**record, "offset": str(at), "timestamp": str(start + at)} for at in range(count)]
    reported = summary([{"records": records}])
    expect = {"summary": {"surfaced": reported, "hidden": reported}, "nextOffset": str(count)}
    if op == "decode":
        made = {"batch": {"records": count, "value": "", "valueTimes": 1, "codec": "none"}, "times": 1}
        request: Json = {"data": {"recipe": [made], "baseOffset": 0}, "options": {"crc": True, "summary": True}}
    else:
        ends = {"lastOffset": str(count - 1), "nextOffset": str(count), "maxTimestamp": str(start + count - 1)}
        first = Batch(recs=(Rec(),), base_timestamp=start).answer(0) | ends | {"recordsCount": count}
        left = {key: value for key, value in first.items() if key not in {"position", "sizeInBytes", "crc", "isValid"}}
        request = {"batches": [{**left, "records": {"numbered": record, "times": count}}]}
    family.add(name, op, "valid", why, basis, request=request, expect=expect)


def families() -> list[Family]:
    """All of this module."""
    title = "Each field at the limits of its type; counts, sizes and damage of all sizes"
    family = Family(51, "derived", title, SOURCE, flags=FLAGS)
    decoded(family)
    encoded(family)
    parsed(family)
    add_sized(family)
    add_logs(family)
    add_kept(family, derived_scenarios())
    for case in family.cases:
        case["request"], case["expect"] = shortened(case["request"]), shortened(case["expect"])
    return [family]
