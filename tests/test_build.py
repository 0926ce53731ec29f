"""New batches: byte for byte what Kafka builds, and what cannot be built."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.support import vector

from seglog_format import build_batch, build_end_marker, decode_batch, encode_batch, new_record
from seglog_format.codec.build import (
    build_control_batch,
    build_message_entry,
    control_record,
    with_offset,
    with_timestamps,
)
from seglog_format.codec.control_record import decode_control_record
from seglog_format.errors import Location, UsageError
from seglog_format.model import CompressionCodec, ControlRecordType, Message, Record, TimestampType

if TYPE_CHECKING:
    from collections.abc import Sequence


RECORDS = (
    new_record(value=b"a", timestamp_ms=1000),
    new_record(key=b"k", value=None, timestamp_ms=1005),
    new_record(key=b"k", value=b"vv", timestamp_ms=1003),
)
CODECS = {"V-06": 0, "V-11": 3, "V-12": 4}


@pytest.mark.parametrize("name", CODECS)
def test_batches_byte_for_byte(name: str) -> None:
    assert encode_batch(build_batch(RECORDS, base_offset=10, codec=CompressionCodec(CODECS[name]))) == vector(name)


@pytest.mark.parametrize(("name", "codec"), [("V-09", CompressionCodec.GZIP), ("V-10", CompressionCodec.SNAPPY)])
def test_compressed_batches_field_by_field(name: str, codec: CompressionCodec) -> None:
    built, expected = (
        decode_batch(encode_batch(build_batch(RECORDS, base_offset=10, codec=codec))),
        decode_batch(vector(name)),
    )
    assert built.records == expected.records
    assert replace(built.header, batch_length=0, crc=0) == replace(expected.header, batch_length=0, crc=0)  # type: ignore[call-arg]


def test_headers_byte_for_byte() -> None:
    record = new_record(key=b"k", value=b"v", timestamp_ms=1000, headers=[(b"h", b"x"), (b"n", None)])
    assert encode_batch(build_batch([record], base_offset=10)) == vector("V-08")


def test_log_append_time_byte_for_byte() -> None:
    assert encode_batch(build_batch(RECORDS, base_offset=10, log_append_time_ms=7777)) == vector("V-07")
    assert with_timestamps(vector("V-06"), TimestampType.LOG_APPEND_TIME, 7777) == vector("V-07")
    assert with_timestamps(vector("V-07"), TimestampType.CREATE_TIME, 1005) == vector("V-06")
    assert with_timestamps(vector("V-07"), TimestampType.LOG_APPEND_TIME, 7777) == vector("V-07")


@pytest.mark.parametrize(("name", "kind"), [("V-13", ControlRecordType.COMMIT), ("V-14", ControlRecordType.ABORT)])
def test_end_markers_byte_for_byte(name: str, kind: ControlRecordType) -> None:
    built = build_end_marker(
        kind,
        producer_id=9,
        producer_epoch=2,
        coordinator_epoch=7,
        timestamp_ms=1234,
        base_offset=5,
        partition_leader_epoch=3,
    )
    assert encode_batch(built) == vector(name)


@pytest.mark.parametrize("name", ["V-15", "V-16", "V-17", "V-18", "V-19"])
def test_kraft_control_batches_byte_for_byte(name: str) -> None:
    stored = decode_batch(vector(name))
    (record,) = stored.records
    control = decode_control_record(record.key, record.value, Location())
    assert control.type is not None
    again = control_record(control.type, control.fields, timestamp_ms=1234)
    built = build_control_batch([again], base_offset=stored.base_offset, partition_leader_epoch=3)
    assert encode_batch(built) == vector(name)


@pytest.mark.parametrize(("name", "magic"), [("V-01", 0), ("V-02", 1)])
def test_messages_byte_for_byte(name: str, magic: int) -> None:
    built = (build_message_entry([record], magic=magic, base_offset=10 + n) for n, record in enumerate(RECORDS))
    assert b"".join(map(encode_batch, built)) == vector(name)


def fields(records: Sequence[Record | Message]) -> list[tuple[object, ...]]:
    return [(each.offset, each.timestamp_ms, each.key, each.value, each.attributes) for each in records]


@pytest.mark.parametrize(("name", "magic"), [("V-03", 0), ("V-04", 1)])
def test_wrappers_field_by_field(name: str, magic: int) -> None:
    built = build_message_entry(RECORDS, magic=magic, base_offset=10, codec=CompressionCodec.LZ4)
    decoded, expected = decode_batch(encode_batch(built)), decode_batch(vector(name))
    assert decoded.records == expected.records
    assert replace(decoded.header, crc=0, message_size=0) == replace(expected.header, crc=0, message_size=0)  # type: ignore[call-arg]


def test_a_wrapper_with_the_brokers_time() -> None:
    records = [RECORDS[0], RECORDS[2]]
    built = build_message_entry(records, magic=1, base_offset=10, codec=CompressionCodec.GZIP, log_append_time_ms=5000)
    decoded, expected = decode_batch(encode_batch(built)), decode_batch(vector("V-05"))
    assert [each[:4] for each in fields(decoded.records)] == [each[:4] for each in fields(expected.records)]
    assert (decoded.header.attributes, decoded.header.max_timestamp_ms) == (9, 5000)


def test_sequences_and_offsets() -> None:
    built = build_batch(RECORDS, producer_id=9, producer_epoch=1, base_sequence=2**31 - 2, is_transactional=True)
    assert [record.sequence for record in built.records] == [2**31 - 2, 2**31 - 1, 0]
    assert decode_batch(encode_batch(built)).header.is_transactional
    sparse = [replace(record, offset=offset) for record, offset in zip(RECORDS, (11, 13, 20), strict=True)]
    kept = decode_batch(encode_batch(build_batch(sparse, base_offset=10, keeps_offsets=True)))
    assert [record.offset for record in kept.records] == [11, 13, 20]
    assert (kept.base_offset, kept.last_offset) == (10, 20)


@pytest.mark.req("SEG-BAT-010")
def test_offset_and_epoch_are_changed_in_place() -> None:
    assert with_offset(vector("V-06"), 0)[:8] == bytes(8)
    assert with_offset(with_offset(vector("V-13"), 77, 8), 5, 3) == vector("V-13")
    assert with_offset(vector("V-01")[:27], 10, 3) == vector("V-01")[:27]
    assert with_timestamps(vector("V-01"), TimestampType.LOG_APPEND_TIME, 5) == vector("V-01")


def test_what_cannot_be_built() -> None:
    with pytest.raises(UsageError, match="at least one record"):
        build_batch([])
    with pytest.raises(UsageError, match="do not fit"):
        build_batch(RECORDS, base_offset=-1)
    with pytest.raises(UsageError, match="do not fit"):
        build_batch(RECORDS, base_offset=2**63 - 2)
    with pytest.raises(UsageError, match="SEG-REC-013"):
        build_batch([replace(record, offset=3) for record in RECORDS], keeps_offsets=True)
    with pytest.raises(UsageError, match="does not end a transaction"):
        build_end_marker(
            ControlRecordType.LEADER_CHANGE, producer_id=1, producer_epoch=1, coordinator_epoch=1, timestamp_ms=1
        )
    with pytest.raises(UsageError, match="do not make one entry"):
        build_message_entry(RECORDS, magic=1)
    with pytest.raises(UsageError, match="magic 2"):
        build_message_entry(RECORDS, magic=2)
