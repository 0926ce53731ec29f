"""Chapter 50: producer snapshots."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import google_crc32c
import pytest
from helpers.index_files import authentic_lines, broken, example, examples, partition, write_example
from helpers.support import vector
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec import reference
from seglog_format.errors import CorruptIndexError, FormatError, Location, TruncatedError, UnsupportedVersionError
from seglog_format.log.index_file import ProducerSnapshot, newest_readable_snapshot
from seglog_format.model import ProducerStateEntry

if TYPE_CHECKING:
    from pathlib import Path

    from helpers.index_files import Example

CHAPTER = "50-producer-snapshot"
EMPTY = bytes.fromhex("0001 48674bc7 00000000")
"""Observed from Kafka 4.1.1."""
BROKEN = [block for block in examples(CHAPTER) if block.breaks]
ENTRY = (88, 0, 0, 2, 0, 1000, -1, 2)


def packed(*entries: tuple[int, ...], count: int | None = None, version: int = 1) -> bytes:
    body = struct.pack(">i", len(entries) if count is None else count)
    body += b"".join(struct.pack(">qhiqiqiq", *entry) for entry in entries)
    return struct.pack(">hI", version, google_crc32c.value(body)) + body


@pytest.mark.req("SEG-PSN-007")
def test_a_snapshot_that_kafka_wrote() -> None:
    snapshot = ProducerSnapshot.from_bytes(vector("V-25"))
    assert (snapshot.version, snapshot.crc) == (1, 0x722C02E3)
    assert reference.decode_producer_snapshot(vector("V-25"), Location()).producers == snapshot.producers
    assert snapshot.producers == (
        ProducerStateEntry(
            producer_id=88,
            producer_epoch=0,
            last_sequence=0,
            last_offset=2,
            offset_delta=0,
            timestamp_ms=1000,
            coordinator_epoch=-1,
            current_txn_first_offset=2,
        ),
        ProducerStateEntry(
            producer_id=77,
            producer_epoch=1,
            last_sequence=1,
            last_offset=1,
            offset_delta=1,
            timestamp_ms=1001,
            coordinator_epoch=-1,
            current_txn_first_offset=0,
        ),
    )
    assert example(CHAPTER, "kafka").data == vector("V-25")


@pytest.mark.req("SEG-PSN-007")
def test_every_number_has_its_place() -> None:
    numbers = "0102030405060708 1112 21222324 3132333435363738 41424344 5152535455565758 61626364 7172737475767778"
    body = bytes.fromhex("00000001" + numbers)
    data = struct.pack(">hI", 1, google_crc32c.value(body)) + body
    (producer,) = ProducerSnapshot.from_bytes(data).producers
    assert producer == ProducerStateEntry(
        0x0102030405060708,
        0x1112,
        0x21222324,
        0x3132333435363738,
        0x41424344,
        0x5152535455565758,
        0x61626364,
        0x7172737475767778,
    )


@pytest.mark.req("SEG-PSN-003")
def test_a_snapshot_without_producers() -> None:
    assert ProducerSnapshot.from_bytes(EMPTY).producers == ()
    assert example(CHAPTER, "empty").data == EMPTY == packed()


@pytest.mark.req("SEG-PSN-001")
@pytest.mark.parametrize("version", [0, 2, 256, -1, 32767])
def test_another_version_is_not_read(version: int) -> None:
    with pytest.raises(UnsupportedVersionError) as caught:
        ProducerSnapshot.from_bytes(packed(ENTRY, version=version))
    assert caught.value.requirements == ("SEG-PSN-001",)


@pytest.mark.req("SEG-PSN-002")
def test_a_wrong_checksum_is_refused_and_both_are_told() -> None:
    data = bytearray(packed(ENTRY))
    data[-1] ^= 1
    with pytest.raises(
        CorruptIndexError, match=r"a\.snapshot:2: crc: expected [0-9a-f]{8}, found c2e7a7db .SEG-PSN-002"
    ):
        ProducerSnapshot.from_bytes(bytes(data), "a.snapshot")


@pytest.mark.req("SEG-PSN-003")
@pytest.mark.parametrize("count", [0, 2, -1, 2**31 - 1, -(2**31)])
def test_a_count_that_does_not_fit_the_size_is_refused(count: int) -> None:
    with pytest.raises(CorruptIndexError) as caught:
        ProducerSnapshot.from_bytes(packed(ENTRY, count=count))
    assert caught.value.requirements == ("SEG-PSN-003",)
    assert caught.value.location.position == 6


@pytest.mark.req("SEG-PSN-003")
def test_bytes_behind_the_last_entry_are_refused_although_the_checksum_is_right() -> None:
    body = packed(ENTRY)[6:] + bytes(5)
    with pytest.raises(CorruptIndexError, match="SEG-PSN-003"):
        ProducerSnapshot.from_bytes(struct.pack(">hI", 1, google_crc32c.value(body)) + body)


@pytest.mark.req("SEG-PSN-003")
@pytest.mark.parametrize("size", range(10))
def test_a_file_without_a_whole_header_is_too_short(size: int) -> None:
    with pytest.raises(TruncatedError, match="SEG-PSN-003"):
        ProducerSnapshot.from_bytes(EMPTY[:size])


@pytest.mark.req("SEG-PSN-001", "SEG-PSN-002")
def test_every_truncation_and_every_changed_byte_is_noticed() -> None:
    data = vector("V-25")
    for size in range(len(data)):
        with pytest.raises(FormatError):
            ProducerSnapshot.from_bytes(data[:size])
    for position in range(len(data)):
        for value in {data[position] ^ 1 << bit for bit in range(8)} | {0x00, 0x7F, 0x80, 0xFF} - {data[position]}:
            with pytest.raises(FormatError) as caught:
                ProducerSnapshot.from_bytes(data[:position] + bytes([value]) + data[position + 1 :])
            assert caught.value.requirements == ("SEG-PSN-001" if position < 2 else "SEG-PSN-002",)


@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_a_snapshot_or_an_error(body: bytes, is_sealed: bool) -> None:  # noqa: FBT001
    data = struct.pack(">hI", 1, google_crc32c.value(body)) + body if is_sealed else body
    try:
        snapshot = ProducerSnapshot.from_bytes(data)
    except FormatError:
        return
    assert len(data) == 10 + 46 * len(snapshot.producers)


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=pytest.mark.req(block.breaks)) for block in BROKEN],
    ids=lambda block: block.breaks,
)
def test_examples_break_what_they_say(tmp_path: Path, block: Example) -> None:
    path = write_example(tmp_path, CHAPTER, block)
    assert set(broken(path, "producer-snapshot")) == {block.breaks}


@pytest.mark.req("SEG-PSN-004")
@pytest.mark.parametrize(
    ("entries", "is_right"),
    [
        ([(0, 0, -1, -1, 0, -1, -1, -1)], True),
        ([ENTRY, (89, *ENTRY[1:])], True),
        ([(-1, *ENTRY[1:])], False),
        *(([(*ENTRY[:field], -2, *ENTRY[field + 1 :])], False) for field in range(1, 8)),
    ],
)
def test_ids_and_numbers_are_in_range(tmp_path: Path, entries: list[tuple[int, ...]], is_right: bool) -> None:  # noqa: FBT001
    path = partition(tmp_path, 4, {"batch": b"", "producer-snapshot": packed(*entries)})
    assert broken(path, "producer-snapshot") == ([] if is_right else ["SEG-PSN-004"])


@pytest.mark.req("SEG-PSN-006")
@pytest.mark.parametrize(("name", "found"), [(3, []), (2, ["SEG-PSN-006"] * 2), (1, ["SEG-PSN-006"] * 2)])
def test_offsets_stay_below_the_name(tmp_path: Path, name: int, found: list[str]) -> None:
    path = partition(tmp_path, name, {"batch": b"", "producer-snapshot": packed(ENTRY)})
    assert broken(path, "producer-snapshot") == found


@pytest.mark.req("SEG-PSN-005")
def test_the_newest_snapshot_that_can_be_read_is_taken(tmp_path: Path) -> None:
    contents = {5: packed(ENTRY), 7: EMPTY, 90: vector("V-25"), 100: EMPTY[:-1], 110: b"", 120: packed(version=2)}
    paths = [tmp_path / f"{offset:020}.snapshot" for offset in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_bytes(content)
    newest = newest_readable_snapshot(paths)
    assert newest is not None
    assert (newest.path, len(newest.producers)) == (str(paths[2]), 2)
    assert newest_readable_snapshot(paths[3:]) is None
    assert newest_readable_snapshot([]) is None


def expected_of(producer: ProducerStateEntry) -> dict[str, Any]:
    batch = {
        "lastSequence": producer.last_sequence,
        "lastOffset": producer.last_offset,
        "offsetDelta": producer.offset_delta,
        "timestamp": producer.timestamp_ms,
    }
    is_open = producer.current_txn_first_offset >= 0
    return {
        "producerId": producer.producer_id,
        "producerEpoch": producer.producer_epoch,
        "coordinatorEpoch": producer.coordinator_epoch,
        "lastTimestamp": producer.timestamp_ms,
        "currentTxnFirstOffset": producer.current_txn_first_offset if is_open else None,
        "batches": [batch] if producer.last_offset >= 0 else [],
    }


@pytest.mark.req("SEG-PSN-007", "SEG-PSN-002")
def test_snapshots_of_real_brokers_hold_what_kafka_reads() -> None:
    count = 0
    for name, path, line in authentic_lines("producerSnapshot"):
        snapshot = ProducerSnapshot.open(path)
        assert [expected_of(producer) for producer in snapshot.producers] == line["producers"], (name, path)
        count += 1
    assert count
