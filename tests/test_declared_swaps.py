"""Declarations with variable parts: swapping two neighbouring fields is noticed by reading and by writing bytes.

The bytes are spelled out here, or were written by Kafka's generated classes. `test_layouts` swaps the fixed layouts.
"""

from __future__ import annotations

import base64
import gzip
import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from construct import Container, ListContainer
from helpers import layout_bytes
from helpers.support import FIXTURES
from helpers.swapping import is_noticed, pairs, structures_in, swapped
from helpers.walking import each_of

from proofs.entries import sealed
from seglog_format import Engine, build_batch, decode_batch, encode_batch, new_record
from seglog_format.cli.structures import structures
from seglog_format.codec.checkpoints import (
    CheckpointedOffset,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
    encode_partition_metadata,
)
from seglog_format.codec.decode import decode_first
from seglog_format.codec.protocol import decode_message, encode_message
from seglog_format.codec.reference import declared
from seglog_format.errors import Location
from seglog_format.model import EpochStart, MessageHeader
from seglog_format.names import FileKind, partition_directory_name, segment_file_name
from seglog_format.schema.control_record import KRAFT_VALUES
from seglog_format.schema.coordinator_records import CONSUMER_PROTOCOL, COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from seglog_format.schema.protocol import declaration
from tools import make_layouts
from tools.message_fixtures import renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from construct import Struct

    from seglog_format.schema.protocol import MessageDefinition

BY_NAME = {"MetaProperties", "CleanShutdown", "QuorumState"}
"""Text in which a reader finds each field by its name: their order says nothing."""
DECLARED = {each.name: each.declaration for each in structures()}
LAYOUTS = make_layouts.declared_codes()
UNIQUE = "0123456789abcdef" * 2


class Checks(NamedTuple):
    """What reads some bytes, and what writes them; each says whether all is well."""

    read: Callable[[], bool]
    write: Callable[[], bool]


def plain(value: object) -> object:
    """Return what was parsed, without the types of construct and without marks of positions."""
    if isinstance(value, Container):
        return {key: plain(each) for key, each in value.items() if key not in {"_io", "start", "end", "size_in_bytes"}}
    return [plain(each) for each in value] if isinstance(value, ListContainer) else value


def stored(name: str, data: str, **fields: Any) -> Checks:  # noqa: ANN401 - of any type
    """Check bytes against the fields that a declaration parses and builds."""
    raw, known = bytes.fromhex(data), DECLARED[name]
    return Checks(lambda: plain(known.parse(raw)) == fields, lambda: known.build(fields) == raw)


def text(name: str, data: bytes, write: Callable[[], bytes], **fields: Any) -> Checks:  # noqa: ANN401
    """Check text against the fields that a declaration parses, and against what is written for them."""
    known = DECLARED[name]
    return Checks(lambda: plain(known.parse(data)) == fields, lambda: plain(known.parse(write())) == fields)


def two_offsets() -> bytes:
    return encode_offset_checkpoint([CheckpointedOffset("orders", 3, 45), CheckpointedOffset("payments", 7, 8)])


def two_epochs() -> bytes:
    return encode_leader_epoch_checkpoint([EpochStart(3, 45), EpochStart(7, 80)])


BATCH = sealed(
    bytes.fromhex(
        "0000000000000000"
        "0000004a"
        "ffffffff"
        "02"
        "00000000"
        "0000"
        "00000001"  # up to the last offset delta
        "0000000000000064"
        "0000000000000067"
        "ffffffffffffffff"
        "ffff"
        "ffffffff"
        "00000002"
        "0c"
        "00"
        "00"
        "00"
        "01"
        "01"
        "00"  # length, attributes, timestamp delta, offset delta, no key, no value
        "22"
        "00"
        "06"
        "02"
        "026b"
        "047677"
        "04"  # the same, key, value, headers count
        "0268"
        "047879"
        "0269"
        "01"  # two headers, the last without a value
    )
)
MESSAGES = (
    sealed(bytes.fromhex("000000000000000400000011000000000040000000016b000000027677")),
    sealed(bytes.fromhex("0000000000000004000000190000000001080000000000000064000000016b000000027677")),
)
HEADERS = (
    MessageHeader(4, 17, int.from_bytes(MESSAGES[0][12:16]), 0, 0x40),
    MessageHeader(4, 25, int.from_bytes(MESSAGES[1][12:16]), 1, 8, 100),
)


def read_batch() -> bool:
    batch = decode_first(declared(BATCH), Location())
    _, found = batch.records
    headers = [(header.key, header.value) for header in found.headers]
    values = (found.offset, found.timestamp_ms, found.key, found.value, found.attributes, headers)
    return values == (1, 103, b"k", b"vw", 0, [(b"h", b"xy"), (b"i", None)])


def write_batch() -> bool:
    headers = [(b"h", b"xy"), (b"i", None)]
    records = [
        new_record(timestamp_ms=100),
        new_record(key=b"k", value=b"vw", timestamp_ms=103, headers=headers),
    ]
    return encode_batch(build_batch(records), engine=Engine.REFERENCE) == BATCH


def read_message(magic: int) -> bool:
    entry = decode_first(declared(MESSAGES[magic]), Location())
    (found,) = entry.records
    return entry.header == HEADERS[magic] and (found.offset, found.key, found.value) == (4, b"k", b"vw")


def write_message(magic: int) -> bool:
    entry = decode_batch(MESSAGES[magic])
    return encode_batch(entry, engine=Engine.REFERENCE) == MESSAGES[magic]


SAMPLES = {
    "Record": Checks(read_batch, write_batch),
    "RecordHeader": Checks(read_batch, write_batch),
    "MessageV0": Checks(partial(read_message, 0), partial(write_message, 0)),
    "MessageV1": Checks(partial(read_message, 1), partial(write_message, 1)),
    "MetadataFrame": stored("MetadataFrame", "010f02", frameVersion=1, type=15, version=2),
    "GzipMemberHeader": stored(
        "GzipMemberHeader",
        "1f8b0804010203040203",
        magic=b"\x1f\x8b",
        method=8,
        flags=4,
        modification_time=0x04030201,
        extra_flags=2,
        operating_system=3,
    ),
    "GzipMemberTrailer": stored("GzipMemberTrailer", "0102030405000000", crc=0x04030201, size=5),
    "XerialHeader": stored(
        "XerialHeader",
        "82534e41505059000000000100000002",
        magic=b"\x82SNAPPY\0",
        version=1,
        compatible_version=2,
    ),
    "Lz4FrameHeader": stored(
        "Lz4FrameHeader",
        "04224d18684005000000000000007e",
        magic=0x184D2204,
        flags=0x68,
        block_descriptor=0x40,
        content_size=5,
        header_checksum=0x7E,
    ),
    "ZstdFrameHeader": stored(
        "ZstdFrameHeader",
        "28b52ffd4158070901",
        magic=0xFD2FB528,
        descriptor=0x41,
        window=0x58,
        dictionary_id=7,
        content_size=0x109,
    ),
    "ZstdSkippableHeader": stored("ZstdSkippableHeader", "502a4d1804000000", magic=0x184D2A50, size=4),
    "ProducerSnapshot": Checks(
        stored(
            "ProducerSnapshot",
            layout_bytes.SNAPSHOT.hex(),
            version=1,
            crc=0x01C4B69F,
            count=1,
            producers=[dict(zip(LAYOUTS["PRODUCER_STATE_ENTRY"], layout_bytes.SNAPSHOT_FIELDS, strict=True))],
        ).read,
        layout_bytes.reference_writes_snapshot,
    ),
    "CheckpointHeader": text("CheckpointHeader", b"0\n2\n", two_offsets, version=0, entry_count=2),
    "OffsetCheckpointEntry": text(
        "OffsetCheckpointEntry",
        b"orders 3 45\n",
        lambda: two_offsets().split(b"\n", 2)[2],
        topic="orders",
        partition=3,
        offset=45,
        rest="",
    ),
    "OffsetCheckpoint": text(
        "OffsetCheckpoint",
        b"0\n2\norders 3 45\npayments 7 8\n",
        two_offsets,
        version=0,
        entry_count=2,
        entries=[
            {"topic": "orders", "partition": 3, "offset": 45, "rest": ""},
            {"topic": "payments", "partition": 7, "offset": 8, "rest": ""},
        ],
    ),
    "LeaderEpochCheckpointEntry": text(
        "LeaderEpochCheckpointEntry",
        b"3 45\n",
        lambda: two_epochs().split(b"\n", 2)[2],
        epoch=3,
        start_offset=45,
        rest="",
    ),
    "LeaderEpochCheckpoint": text(
        "LeaderEpochCheckpoint",
        b"0\n2\n3 45\n7 80\n",
        two_epochs,
        version=0,
        entry_count=2,
        entries=[{"epoch": 3, "start_offset": 45, "rest": ""}, {"epoch": 7, "start_offset": 80, "rest": ""}],
    ),
    "PartitionMetadata": text(
        "PartitionMetadata",
        b"version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAQ",
        lambda: encode_partition_metadata("AAAAAAAAAAEAAAAAAAAAAQ"),
        version=0,
        topic_id="AAAAAAAAAAEAAAAAAAAAAQ",
    ),
    "SegmentFileName": text(
        "SegmentFileName",
        b"00000000000000000087.index.deleted",
        lambda: segment_file_name(87, FileKind.OFFSET_INDEX, ".deleted").encode(),
        base_offset=87,
        kind=".index",
        suffix=".deleted",
    ),
    "MetadataSnapshotFileName": text(
        "MetadataSnapshotFileName",
        b"00000000000000000087-0000000001.checkpoint.part",
        lambda: b"%020d-%010d.checkpoint.part" % (87, 1),  # nothing here writes one
        end_offset=87,
        epoch=1,
        kind=".checkpoint",
        suffix=".part",
    ),
    "PartitionDirectoryName": text(
        "PartitionDirectoryName",
        f"orders-3.{UNIQUE}-delete".encode(),
        lambda: partition_directory_name("orders", 3, UNIQUE, "delete").encode(),
        topic="orders",
        partition=3,
        unique=UNIQUE,
        state="delete",
    ),
}
"""Checks by the name of a declaration."""


def unnoticed(known: Struct, checks: Checks) -> Iterator[str]:
    """Yield the swaps in a declaration that a check of reading or of writing does not notice."""
    for pair in pairs(known):
        with swapped(known, pair):
            for what, check in zip(Checks._fields, checks, strict=True):
                if not is_noticed(check):
                    yield f"{' <-> '.join(pair)}: not by {what}"


def test_every_declaration_is_swapped_somewhere() -> None:
    fixed = set(make_layouts.STRUCTURES.values())
    messages = {name for name in DECLARED if name.startswith(("LeaderChange", "Snapshot", "KRaft"))}
    swaps = {name for name, known in DECLARED.items() if pairs(known)}
    assert swaps == fixed - {"BytesLength"} | messages | BY_NAME | set(SAMPLES)


@each_of("name", SAMPLES)
def test_bytes_are_read_and_written_as_declared(name: str) -> None:
    assert [what for what, check in SAMPLES[name]._asdict().items() if is_noticed(check)] == []


@each_of("name", SAMPLES)
def test_a_swap_is_noticed_by_reading_and_by_writing(name: str) -> None:
    assert list(unnoticed(DECLARED[name], SAMPLES[name])) == []


# Messages in Kafka's own topics: what its generated classes wrote


class Sample(NamedTuple):
    """A message: its bytes, and the fields that Kafka's own converter printed."""

    data: bytes
    fields: dict[str, Any]


def definitions() -> dict[str, MessageDefinition]:
    """Return the newest definition of each message by its name, as Kafka's generated classes are called."""
    every = [one for known in FRAMED_TOPICS.values() for one in known.values()]
    every += [*KRAFT_VALUES.values(), *CONSUMER_PROTOCOL.values()]
    for records in COORDINATOR_TOPICS.values():
        every += [one for record in records.values() for one in (record.key, record.value)]
    return {class_name(one.name): one for one in every}


def class_name(name: str) -> str:
    """Return the name of a class, where a definition has that of a type of records: ``TOPIC_RECORD``."""
    return "".join(map(str.capitalize, name.split("_"))) if "_" in name else name


def samples() -> dict[str, list[Sample]]:
    """Return the messages of the newest version of each definition, of the newest release that wrote some."""
    found: dict[str, list[Sample]] = {}
    for name, version, sample in (*_of_newest_release(), *_of_releases(), *_spelled()):
        known = DEFINITIONS.get(name)
        if known is not None and version == known.latest:
            found.setdefault(name, []).append(sample)
    return found


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FIXTURES / "messages" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _of_newest_release() -> Iterator[tuple[str, int, Sample]]:
    for line in _lines("kinds"):
        kind, version, data = line["kind"], line["version"], base64.b64decode(line["valueBytes"])
        fields = renamed(kind, line["value"])
        if line["where"].startswith("control"):  # the version is a field of its own, and random in these
            data, fields = version.to_bytes(2) + data[2:], fields | {"version": version}
        else:
            data = data[3:] if line["where"] in FRAMED_TOPICS else data[2:]
        yield kind, version, Sample(data, fields)


def _of_releases() -> Iterator[tuple[str, int, Sample]]:
    """Yield keys, and values of kinds that the newest release has no more."""
    lines = list(_lines("releases"))
    last = {line["kind"]: line["release"] for line in lines}
    written = {line["kind"] for line in _lines("kinds")}
    for line in lines:
        if line["release"] == last[line["kind"]]:
            if "keyBytes" in line:
                key = COORDINATOR_TOPICS[line["topic"]][line["keyType"]].key
                yield class_name(key.name), 0, Sample(base64.b64decode(line["keyBytes"])[2:], line["key"])
            if line["kind"] not in written:
                data = base64.b64decode(line["valueBytes"])[line["prefix"] :]
                yield line["kind"], line["version"], Sample(data, renamed(line["kind"], line["value"]))


def _spelled() -> Iterator[tuple[str, int, Sample]]:
    for name, sample in SPELLED.items():
        yield name, DEFINITIONS[name].latest, sample
    for sample in (each for name, _, each in _of_newest_release() if name == "RemoteLogSegmentMetadataRecord"):
        if sample.data[-2:] == bytes(2):  # state 0, no tagged field
            finished = Sample(sample.data[:-2] + b"\1\0", {**sample.fields, "remoteLogSegmentState": 1})
            yield "RemoteLogSegmentMetadataRecord", 0, finished


SPELLED = {
    "ConsumerGroupMemberMetadataKey": Sample(bytes.fromhex("000161000162"), {"groupId": "a", "memberId": "b"}),
    "ShareGroupPartitionMetadataValue": Sample(
        bytes.fromhex("02" + 15 * "00" + "010261000000030200000001020272000000"),
        {
            "topics": [
                {
                    "topicId": "AAAAAAAAAAAAAAAAAAAAAQ",
                    "topicName": "a",
                    "numPartitions": 3,
                    "partitionMetadata": [{"partition": 1, "racks": ["r"]}],
                }
            ]
        },
    ),
    "SnapshotFooterRecord": Sample(bytes.fromhex("000500"), {"version": 5}),
}
"""Messages in which neighbours differ, where they are equal in all that Kafka's classes wrote at random."""
DEFINITIONS = definitions()
SAMPLED = samples()


def checks_of(name: str) -> Checks:
    """Return checks of all samples of a message."""
    definition, version = DEFINITIONS[name], DEFINITIONS[name].latest

    def read() -> bool:
        return all(decode_message(definition, version, each.data, Location()) == each.fields for each in SAMPLED[name])

    def write() -> bool:
        return all(encode_message(definition, version, each.fields) == each.data for each in SAMPLED[name])

    return Checks(read, write)


def test_kafka_wrote_every_message_that_is_declared() -> None:
    assert sorted(DEFINITIONS.keys() - SAMPLED.keys()) == []


@each_of("name", SAMPLED)
def test_messages_are_read_and_written_as_declared(name: str) -> None:
    assert [what for what, check in checks_of(name)._asdict().items() if is_noticed(check)] == []


@each_of("name", SAMPLED)
def test_a_swap_in_a_message_is_noticed_by_reading_and_by_writing(name: str) -> None:
    known = declaration(DEFINITIONS[name], DEFINITIONS[name].latest)
    assert [text for each in structures_in(known) for text in unnoticed(each, checks_of(name))] == []
