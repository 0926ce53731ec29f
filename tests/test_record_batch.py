"""Chapter 30: record batches of magic 2."""

from __future__ import annotations

import pytest
from helpers.batches import batch, patched, record
from helpers.decoders import decode_batch
from helpers.support import vector
from helpers.walking import each_of

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import walk
from seglog_format.errors import CorruptRecordError, FormatError, TruncatedError, UnsupportedVersionError
from seglog_format.model import RecordBatchHeader, TimestampType
from seglog_format.schema.fields import layout
from seglog_format.schema.fixed_fields import (
    RECORD_BATCH_HEADER,
)
from seglog_format.schema.record_batch import RecordBatchHeader as Schema


def offsets(data: bytes) -> list[int]:
    return [one.offset for one in decode_batch(data).records]


def timestamps(data: bytes) -> list[int]:
    return [one.timestamp_ms for one in decode_batch(data).records]


def refusal(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        decode_batch(data)
    return caught.value


@pytest.mark.req("SEG-BAT-001", "SEG-BAT-003")
def test_header_of_a_batch_that_kafka_wrote() -> None:
    header = decode_batch(vector("V-13")).header
    assert header == RecordBatchHeader(
        base_offset=5,
        batch_length=66,
        partition_leader_epoch=3,
        magic=2,
        crc=0xA905E5C2,
        attributes=0x30,
        last_offset_delta=0,
        base_timestamp_ms=1234,
        max_timestamp_ms=1234,
        producer_id=9,
        producer_epoch=2,
        base_sequence=-1,
        records_count=1,
    )


@pytest.mark.req("SEG-BAT-001")
def test_construct_and_struct_read_the_same_header() -> None:
    for name in ("V-06", "V-08", "V-13", "V-20", "V-22"):
        parsed = Schema.parse(vector(name))
        assert RECORD_BATCH_HEADER.unpack_from(vector(name)) == tuple(parsed[row.name] for row in layout(Schema))


def test_layout_lists_offsets_sizes_and_types() -> None:
    rows = {row.name: (row.offset, row.size, row.type) for row in layout(Schema)}
    assert rows["magic"] == (16, 1, "int8")
    assert rows["crc"] == (17, 4, "uint32")
    assert rows["attributes"] == (21, 2, "int16")
    assert rows["records_count"] == (57, 4, "int32")


def test_records_of_a_plain_batch() -> None:
    records = decode_batch(vector("V-06")).records
    assert [(one.offset, one.timestamp_ms, one.key, one.value) for one in records] == [
        (10, 1000, None, b"a"),
        (11, 1005, b"k", None),
        (12, 1003, b"k", b"vv"),
    ]


@pytest.mark.parametrize("name", ["V-09", "V-10", "V-11", "V-12"])
def test_every_codec_holds_the_same_records(name: str) -> None:
    plain, compressed = decode_batch(vector("V-06")), decode_batch(vector(name))
    assert compressed.records == plain.records


@pytest.mark.req("SEG-BAT-002")
@pytest.mark.parametrize("length", [14, 48])
def test_batch_length_below_the_header(length: int) -> None:
    error = refusal(patched(vector("V-06"), 8, "i", length, seal=False))
    assert error.requirements == ("SEG-BAT-002",)
    assert error.location.position == 8


@pytest.mark.req("SEG-BAT-002")
def test_the_smallest_batch_is_fine() -> None:
    assert decode_batch(vector("V-20")).records == ()


@pytest.mark.req("SEG-BAT-003")
@pytest.mark.parametrize("position", [17, 21, 23, 27, 35, 43, 51, 53, 57, 61, 86])
def test_checksum_covers_attributes_to_end(position: int) -> None:
    data = bytearray(vector("V-06"))
    data[position] ^= 1
    error = refusal(bytes(data))
    assert error.requirements == ("SEG-BAT-003",)
    assert isinstance(error, CorruptRecordError)


@pytest.mark.req("SEG-BAT-010")
def test_offset_epoch_and_magic_are_outside_the_checksum() -> None:
    moved = patched(patched(vector("V-06"), 0, "q", 500, seal=False), 12, "i", 7, seal=False)
    assert offsets(moved) == [500, 501, 502]
    (frame,) = walk(patched(vector("V-06"), 12, "i", 99, seal=False))
    assert checksum_is_valid(frame)


@pytest.mark.req("SEG-BAT-004")
@pytest.mark.parametrize(
    ("magic", "kind"), [(3, UnsupportedVersionError), (127, UnsupportedVersionError), (-1, CorruptRecordError)]
)
def test_magic_is_known(magic: int, kind: type[FormatError]) -> None:
    error = refusal(patched(vector("V-06"), 16, "b", magic, seal=False))
    assert type(error) is kind
    assert str(error) == f"<bytes>:16: magic: expected 0, 1 or 2, found {magic} [SEG-BAT-004]"


@pytest.mark.req("SEG-BAT-005")
def test_base_offset_is_not_negative() -> None:
    assert refusal(patched(vector("V-06"), 0, "q", -1)).requirements == ("SEG-BAT-005",)


@pytest.mark.req("SEG-BAT-006")
def test_last_offset_delta_is_not_negative() -> None:
    assert refusal(patched(vector("V-06"), 23, "i", -1)).requirements == ("SEG-BAT-006",)


@pytest.mark.req("SEG-BAT-007")
def test_records_count_is_not_negative() -> None:
    error = refusal(patched(vector("V-06"), 57, "i", -1))
    assert error.requirements == ("SEG-BAT-007",)
    assert error.location.position == 57


@pytest.mark.req("SEG-BAT-008")
@pytest.mark.parametrize("name", ["V-06", "V-09", "V-10", "V-11", "V-12"])
@pytest.mark.parametrize("count", [0, 1, 2, 4, 2**31 - 1])
def test_records_count_is_what_the_section_holds(name: str, count: int) -> None:
    assert refusal(patched(vector(name), 57, "i", count)).requirements == ("SEG-BAT-008",)


@pytest.mark.req("SEG-BAT-009")
def test_last_offset_fits_64_bits() -> None:
    assert refusal(patched(vector("V-06"), 0, "q", 2**63 - 2, seal=False)).requirements == ("SEG-BAT-009",)
    assert offsets(patched(vector("V-06"), 0, "q", 2**63 - 3, seal=False))[-1] == 2**63 - 1


@pytest.mark.req("SEG-BAT-011")
def test_log_append_time_is_every_records_timestamp() -> None:
    assert timestamps(vector("V-07")) == [7777, 7777, 7777]
    assert decode_batch(vector("V-07")).header.timestamp_type is TimestampType.LOG_APPEND_TIME


@pytest.mark.req("SEG-BAT-012")
def test_create_time_is_base_plus_delta() -> None:
    assert timestamps(vector("V-06")) == [1000, 1005, 1003]
    assert decode_batch(vector("V-06")).header.timestamp_type is TimestampType.CREATE_TIME


@pytest.mark.req("SEG-BAT-012")
def test_timestamp_sum_wraps_like_64_bit_numbers() -> None:
    data = batch(record(timestamp_delta=1), base_timestamp_ms=2**63 - 1, max_timestamp_ms=-(2**63))
    assert timestamps(data) == [-(2**63)]


@pytest.mark.req("SEG-BAT-013")
def test_delete_horizon_is_the_base_that_deltas_count_from() -> None:
    decoded = decode_batch(vector("V-22"))
    assert decoded.header.delete_horizon_ms == 501_000
    assert timestamps(vector("V-22")) == [2000, 1500]
    assert decode_batch(vector("V-23")).header.delete_horizon_ms is None


@pytest.mark.req("SEG-BAT-016")
def test_next_offset_does_not_depend_on_the_records_left() -> None:
    for name in ("V-21", "V-22", "V-23", "V-24"):
        decoded = decode_batch(vector(name))
        assert (decoded.base_offset, decoded.last_offset, decoded.next_offset) == (100, 103, 104)
    assert [offsets(vector(name)) for name in ("V-21", "V-22", "V-23")] == [[100, 101, 102, 103], [101, 102], [102]]


@pytest.mark.req("SEG-BAT-017")
@pytest.mark.parametrize(
    ("base_sequence", "last_sequence"), [(-1, -1), (0, 2), (2**31 - 3, 2**31 - 1), (2**31 - 2, 0), (2**31 - 1, 1)]
)
def test_last_sequence_wraps(base_sequence: int, last_sequence: int) -> None:
    header = decode_batch(patched(vector("V-06"), 53, "i", base_sequence)).header
    assert header.last_sequence == last_sequence


@pytest.mark.req("SEG-BAT-018")
def test_empty_batch_moves_the_next_offset() -> None:
    decoded = decode_batch(vector("V-20"))
    assert decoded.records == ()
    assert decoded.next_offset == 105
    assert decode_batch(patched(vector("V-20"), 21, "h", 0x01)).records == ()


def test_attributes() -> None:
    header = decode_batch(vector("V-13")).header
    assert header.is_transactional
    assert header.is_control
    assert decode_batch(patched(vector("V-06"), 21, "h", -128)).header.attributes == -128


@each_of("size", range(87))
def test_truncation_everywhere(size: int) -> None:
    with pytest.raises(TruncatedError) as caught:
        decode_batch(vector("V-06")[:size])
    assert caught.value.requirements == ("SEG-LOG-004",)


def test_bytes_after_the_batch_are_none_of_its_business() -> None:
    assert offsets(vector("V-06") + b"more") == [10, 11, 12]
