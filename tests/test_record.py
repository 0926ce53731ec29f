"""Chapter 31: records of magic 2."""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.batches import batch, nullable, patched, record, zigzag_varint
from helpers.decoders import decode_batch
from helpers.support import vector
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.checks.verify import verify_log
from seglog_format.codec.plain import varint_size
from seglog_format.errors import FormatError
from seglog_format.model import Record, RecordHeader
from seglog_format.schema.fields import Varint32, Varint64, unzigzag, zigzag


def one(data: bytes) -> Record:
    (found,) = decode_batch(data).records
    assert isinstance(found, Record)
    return found


def raw(body: bytes) -> bytes:
    """Return a batch with one record of exactly these bytes after its length."""
    return batch(zigzag_varint(len(body)) + body)


def refusal(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        decode_batch(data)
    return caught.value


def found(data: bytes) -> list[str]:
    return [finding.requirement for finding in verify_log(data)]


@pytest.mark.req("SEG-REC-001")
@pytest.mark.parametrize("change", [-1, 1])
def test_fields_fill_the_length(change: int) -> None:
    whole = record(value=b"abc")
    section = zigzag_varint(len(whole) - 1 + change) + whole[1:]
    error = refusal(batch(section + b"\0" * max(change, 0)))
    assert error.requirements == ("SEG-REC-001",)
    assert error.location.position == 61


@pytest.mark.req("SEG-REC-002")
@pytest.mark.parametrize("length", [-1, -(2**31)])
def test_length_is_not_negative(length: int) -> None:
    error = refusal(batch(zigzag_varint(length) + record()[1:]))
    assert error.requirements == ("SEG-REC-002",)
    assert error.location.field == "records[0].length"


@pytest.mark.req("SEG-REC-003")
def test_record_attributes_are_noted() -> None:
    data = batch(record(attributes=0x7F))
    assert one(data).attributes == 0x7F
    assert found(data) == ["SEG-REC-003"]


LONG_NUMBERS = {
    "offset delta of six bytes": b"\0\0" + b"\x80" * 5 + b"\0" + b"\x01\x01\0",
    "fifth byte goes on": b"\0\0" + b"\xff" * 5 + b"\x01\x01\0",
    "timestamp delta of eleven bytes": b"\0" + b"\x80" * 10 + b"\0" + b"\0\x01\x01\0",
}


@pytest.mark.req("SEG-REC-004")
@pytest.mark.parametrize("body", LONG_NUMBERS.values(), ids=LONG_NUMBERS.keys())
def test_numbers_end_within_their_width(body: bytes) -> None:
    assert refusal(raw(body)).requirements == ("SEG-REC-004",)


@pytest.mark.req("SEG-REC-004")
def test_bits_beyond_the_width_are_dropped() -> None:
    assert Varint32.parse(b"\x80\x80\x80\x80\x70") == 0
    assert Varint32.parse(b"\xfe\xff\xff\xff\x7f") == 2**31 - 1
    assert Varint64.parse(b"\xff" * 9 + b"\x7f") == -(2**63)


@pytest.mark.req("SEG-REC-005")
def test_padded_numbers_are_read_and_reported() -> None:
    data = raw(b"\0\0\x80\x00\x01\x01\0")
    assert one(data).offset_delta == 0
    assert found(data) == ["SEG-REC-005"]


PAST_THE_END = {
    "key": b"\0\0\0" + zigzag_varint(50) + b"k",
    "value": b"\0\0\0\x01" + zigzag_varint(2**31 - 1) + b"v",
    "headers[0].value": b"\0\0\0\x01\x01\x02" + nullable(b"h") + zigzag_varint(9) + b"x",
}


@pytest.mark.req("SEG-REC-006")
@pytest.mark.parametrize(("field", "body"), PAST_THE_END.items())
def test_nothing_runs_past_the_section(field: str, body: bytes) -> None:
    error = refusal(raw(body))
    assert error.requirements == ("SEG-REC-006",)
    assert error.location.field == f"records[0].{field}"


@pytest.mark.req("SEG-REC-007")
@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_is_null(length: int) -> None:
    null = zigzag_varint(length)
    found_record = one(raw(b"\0\0\0" + null + null + zigzag_varint(1) + nullable(b"") + null))
    assert (found_record.key, found_record.value) == (None, None)
    assert found_record.headers == (RecordHeader(b"", None),)


@pytest.mark.req("SEG-REC-007")
def test_empty_is_not_null() -> None:
    found_record = one(batch(record(key=b"", value=b"", headers=((b"", b""),))))
    assert (found_record.key, found_record.value, found_record.headers) == (b"", b"", (RecordHeader(b"", b""),))


@pytest.mark.req("SEG-REC-008")
def test_header_count_is_not_negative() -> None:
    error = refusal(raw(b"\0\0\0\x01\x01" + zigzag_varint(-1)))
    assert error.requirements == ("SEG-REC-008",)


@pytest.mark.req("SEG-REC-009")
def test_header_key_is_not_null() -> None:
    error = refusal(raw(b"\0\0\0\x01\x01\x02" + zigzag_varint(-1) + b"\x01"))
    assert error.requirements == ("SEG-REC-009",)
    assert error.location.field == "records[0].headers[0].key"


@pytest.mark.req("SEG-REC-006")
@pytest.mark.parametrize("count", [2, 2**31 - 1])
def test_header_count_beyond_the_bytes(count: int) -> None:
    error = refusal(raw(b"\0\0\0\x01\x01" + zigzag_varint(count) + nullable(b"h") + nullable(b"x")))
    assert error.requirements == ("SEG-REC-006",)


@pytest.mark.req("SEG-REC-010")
def test_headers_keep_order_and_repeat() -> None:
    pairs = ((b"b", b"1"), (b"a", None), (b"b", b"1"), (b"", b""))
    assert one(batch(record(headers=pairs))).headers == tuple(RecordHeader(*pair) for pair in pairs)


def test_headers_that_kafka_wrote() -> None:
    assert one(vector("V-08")).headers == (RecordHeader(b"h", b"x"), RecordHeader(b"n", None))


@pytest.mark.req("SEG-REC-011")
def test_header_keys_that_are_no_text_are_reported() -> None:
    data = batch(record(headers=((b"\xff", b""),)))
    assert one(data).headers[0].key == b"\xff"
    assert found(data) == ["SEG-REC-011"]


@pytest.mark.req("SEG-REC-012")
def test_offsets_come_from_deltas() -> None:
    records = decode_batch(vector("V-22")).records
    assert [one_record.offset for one_record in records] == [101, 102]


@pytest.mark.req("SEG-REC-013")
def test_offset_deltas_that_do_not_increase_are_reported() -> None:
    data = batch(record(offset_delta=1) + record(offset_delta=1), 2)
    assert [one_record.offset for one_record in decode_batch(data).records] == [1, 1]
    assert found(data) == ["SEG-REC-013"]


@pytest.mark.req("SEG-REC-014")
@pytest.mark.parametrize("delta", [-1, 3])
def test_offset_deltas_out_of_range_are_reported(delta: int) -> None:
    data = batch(record(offset_delta=delta), last_offset_delta=2, base_offset=5)
    assert one(data).offset == 5 + delta
    assert "SEG-REC-014" in found(data)


@pytest.mark.req("SEG-REC-014")
@pytest.mark.parametrize(("base", "delta"), [(0, -1), (2**63 - 1, 1)])
def test_offsets_that_cannot_exist_are_refused(base: int, delta: int) -> None:
    assert refusal(batch(record(offset_delta=delta), base_offset=base)).requirements == ("SEG-REC-014",)


@pytest.mark.req("SEG-REC-015")
@pytest.mark.parametrize(("base", "expected"), [(-1, -1), (0, 2), (2**31 - 2, 0)])
def test_sequence_comes_from_the_delta(base: int, expected: int) -> None:
    data = batch(record(offset_delta=2), base_sequence=base, last_offset_delta=2, producer_id=1, producer_epoch=0)
    assert one(data).sequence == expected


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_round_trip(value: int) -> None:
    assert unzigzag(zigzag(value)) == value
    data = zigzag_varint(value)
    assert Varint64.parse(data) == value
    assert Varint64.build(value) == data
    assert varint_size(value) == len(data)


@given(
    st.lists(
        st.tuples(
            st.integers(-(2**63), 2**63 - 1),
            st.none() | st.binary(max_size=40),
            st.none() | st.binary(max_size=200),
            st.lists(st.tuples(st.binary(max_size=9), st.none() | st.binary(max_size=9)), max_size=3),
        ),
        max_size=5,
    )
)
def test_records_read_as_written(
    rows: list[tuple[int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]],
) -> None:
    section = b"".join(
        record(delta, index, key, value, tuple(headers)) for index, (delta, key, value, headers) in enumerate(rows)
    )
    records = decode_batch(batch(section, len(rows), base_timestamp_ms=0, last_offset_delta=9)).records
    assert [(r.timestamp_ms, r.offset, r.key, r.value) for r in records] == [
        (delta, index, key, value) for index, (delta, key, value, _) in enumerate(rows)
    ]
    assert [[(h.key, h.value) for h in r.headers] for r in records] == [headers for *_, headers in rows]


@pytest.mark.parametrize("name", ["V-06", "V-08", "V-22"])
def test_every_flipped_byte_with_a_right_checksum(name: str) -> None:
    data = vector(name)
    found: Counter[str] = Counter()
    for position in range(61, len(data)):
        for value in (0x00, 0x7F, 0x80, 0xFF, *(data[position] ^ 1 << bit for bit in range(8))):
            try:
                decode_batch(patched(data, position, "B", value))
                found["decoded"] += 1
            except FormatError as error:
                found[error.requirements[0].rpartition("-")[0]] += 1
    assert set(found) == {"decoded", "SEG-REC"}
