"""Chapter 33: messages of magic 0 and 1, plain and in wrappers."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from typing import Any

import pytest
from helpers.decoders import decode_batch
from helpers.messages import GZIP, LOG_APPEND_TIME, LZ4, SNAPPY, ZSTD, message, nullable, sealed, wrapper
from helpers.support import authentic, authentic_expected, authentic_names, vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.checks.verify import verify_log
from seglog_format.codec.framing import frame_at, walk
from seglog_format.codec.message_set import MessageEntry, read_message_entry
from seglog_format.errors import CorruptRecordError, FormatError, Location, RefusedError
from seglog_format.model import INT64_MAX, Frame, Message, TimestampType
from seglog_format.schema.fields import layout
from seglog_format.schema.fixed_fields import MESSAGE_MIN_SIZES
from seglog_format.schema.message_set import MESSAGES, MessageV0, MessageV1

CASES = [
    name
    for name in authentic_names()
    if name.split("/")[0] in {"0.8.2.2", "0.10.2.2"} or name.split("/")[1].startswith(("format", "mixed"))
]


def frame(data: bytes) -> Frame:
    found = frame_at(memoryview(data), 0, len(data))
    assert isinstance(found, Frame)
    return found


def read(data: bytes, limit: int = 2**20) -> MessageEntry:
    return read_message_entry(frame(data), at=Location(), limit=limit)


def messages(data: bytes) -> tuple[Message, ...]:
    return read_message_entry(frame(data), at=Location(), limit=2**20).messages


def offsets(data: bytes) -> list[int]:
    return [one.offset for one in messages(data)]


def times(data: bytes) -> list[int]:
    return [one.timestamp_ms for one in messages(data)]


def refusal(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        decode_batch(data)
    return caught.value


def found(data: bytes) -> list[str]:
    return [finding.requirement for finding in verify_log(data)]


def fields(data: bytes) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(one.offset, one.key, one.value) for entry in walk(data) for one in decode_batch(entry.data).records]


THREE = [(10, None, b"a"), (11, b"k", None), (12, b"k", b"vv")]


@pytest.mark.req("SEG-MSG-001")
def test_layout_of_magic_0() -> None:
    assert fields(vector("V-01")) == THREE
    assert [row.offset for row in layout(MessageV0)] == [0, 8, 12, 16, 17, 18, None]


@pytest.mark.req("SEG-MSG-002")
def test_layout_of_magic_1() -> None:
    data = vector("V-02")
    assert fields(data) == THREE
    assert [times(data[position:])[0] for position in (0, 35, 70)] == [1000, 1005, 1003]
    assert [row.offset for row in layout(MessageV1)] == [0, 8, 12, 16, 17, 18, 26, None]


@pytest.mark.parametrize(("name", "magic"), [("V-01", 0), ("V-02", 1)])
def test_declaration_and_decoder_agree(name: str, magic: int) -> None:
    for entry in walk(vector(name)):
        stored = MESSAGES[magic].parse(bytes(entry.data))
        (one,) = decode_batch(entry.data).records
        assert isinstance(one, Message)
        assert (stored.offset, stored.key, stored.value) == (one.offset, one.key, one.value)
        assert (stored.crc, stored.attributes) == (one.crc, one.attributes)
        assert stored.get("timestamp_ms", -1) == one.timestamp_ms
        assert stored.message_size + 12 == one.size_in_bytes


@pytest.mark.req("SEG-MSG-003")
@pytest.mark.parametrize("size", range(14, 22))
def test_magic_1_has_room_for_its_fixed_fields(size: int) -> None:
    error = refusal(sealed((b"\x01\x00" + bytes(20))[: size - 4], 10))
    assert error.requirements == ("SEG-MSG-003",)
    assert (error.location.position, error.location.field) == (8, "message_size")
    assert error.expected == f"at least {MESSAGE_MIN_SIZES[1]}"


@pytest.mark.req("SEG-MSG-003")
@pytest.mark.parametrize("size", [-(2**31), -1, 0, 13])
def test_size_inside_a_wrapper(size: int) -> None:
    tail = struct.pack(">qi", 11, size) + bytes(30)
    error = refusal(wrapper(message(10), tail, offset=11))
    assert error.requirements == ("SEG-MSG-003",)
    assert error.location.field == "messages.message_size"


@pytest.mark.req("SEG-MSG-003")
def test_room_inside_a_wrapper() -> None:
    error = refusal(wrapper(sealed(b"\x01\x00" + bytes(15), 0), offset=0, magic=1))
    assert error.requirements == ("SEG-MSG-003",)
    assert error.location.field == "messages[0].message_size"


@pytest.mark.req("SEG-MSG-003")
@pytest.mark.parametrize("magic", [0, 1])
def test_smallest_message(magic: int) -> None:
    data = message(7, None, None, magic=magic)
    assert len(data) == 12 + MESSAGE_MIN_SIZES[magic]
    assert fields(data) == [(7, None, None)]
    assert found(data) == []


@pytest.mark.req("SEG-MSG-004")
@pytest.mark.parametrize("name", ["V-01", "V-02", "V-03", "V-04", "V-05"])
def test_checksum_covers_everything_from_the_magic_on(name: str) -> None:
    data = vector(name)
    data = data[: 12 + int.from_bytes(data[8:12], "big")]
    assert struct.unpack_from(">I", data, 12) == (zlib.crc32(data[16:]),)
    for position in range(17, len(data)):
        broken = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        assert refusal(broken).requirements == ("SEG-MSG-004",)
        assert found(broken)[0] == "SEG-MSG-004"


@pytest.mark.req("SEG-MSG-004")
def test_checksum_does_not_cover_the_offset() -> None:
    data = message(10)
    assert fields(struct.pack(">q", 77) + data[8:]) == [(77, None, b"a")]


LENGTHS = [
    (b"\x00\x00" + struct.pack(">i", 9) + b"k" + nullable(b"v"), "key", 18),
    (b"\x00\x00" + struct.pack(">i", 2**31 - 1) + nullable(b"v"), "key", 18),
    (b"\x00\x00" + nullable(b"k") + struct.pack(">i", 2) + b"v", "value", 23),
    (b"\x00\x00" + nullable(b"kkkk") + bytes(3), "value", 26),
    (b"\x00\x00" + nullable(b"kkkk"), "value", 26),
    (b"\x01\x00" + bytes(8) + nullable(b"k") + struct.pack(">i", 2) + b"v", "value", 31),
]


@pytest.mark.req("SEG-MSG-005")
@pytest.mark.parametrize(("body", "field", "position"), LENGTHS)
def test_key_and_value_end_before_the_message(body: bytes, field: str, position: int) -> None:
    error = refusal(sealed(body, 10))
    assert error.requirements == ("SEG-MSG-005",)
    assert (error.location.field, error.location.position) == (field, position)
    inner = refusal(wrapper(sealed(body, 0), offset=0, magic=body[0]))
    assert inner.requirements == ("SEG-MSG-005",)
    assert inner.location.field == f"messages[0].{field}"


@pytest.mark.req("SEG-MSG-006")
@pytest.mark.parametrize("magic", [0, 1])
def test_bytes_after_the_value(magic: int) -> None:
    data = message(10, b"k", b"v", magic=magic, trailing=b"more")
    assert fields(data) == [(10, b"k", b"v")]
    assert found(data) == ["SEG-MSG-006"]
    assert read(data).trailing_size == 4
    inside = wrapper(message(0, magic=magic, trailing=b"."), message(1, magic=magic), offset=1, magic=magic)
    assert found(inside) == ["SEG-MSG-006"]
    assert read(inside).inner_trailing_sizes == (1, 0)


@pytest.mark.req("SEG-MSG-007")
@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_negative_lengths_are_null(length: int) -> None:
    data = sealed(b"\x00\x00" + struct.pack(">ii", length, length), 10)
    assert fields(data) == [(10, None, None)]
    assert fields(message(10, b"", b"")) == [(10, b"", b"")]


@pytest.mark.req("SEG-MSG-008")
def test_magic_0_has_no_timestamp() -> None:
    batch = decode_batch(message(10))
    assert batch.header.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    assert batch.header.max_timestamp_ms == batch.records[0].timestamp_ms == -1
    inside = wrapper(message(0), offset=9, magic=1, attributes=SNAPPY | LOG_APPEND_TIME, timestamp_ms=5000)
    assert times(inside) == [-1]


@pytest.mark.req("SEG-MSG-009")
@pytest.mark.parametrize("magic", [0, 1])
def test_wrapper_holds_messages(magic: int) -> None:
    null = refusal(message(10, None, None, magic=magic, attributes=GZIP))
    assert (null.requirements, null.found) == (("SEG-MSG-009",), "null")
    for content in (b"", message(0, magic=magic)[:-1], bytes(11)):
        empty = refusal(wrapper(content, offset=10, magic=magic))
        assert empty.requirements == ("SEG-MSG-009",)
        assert empty.location.field == "messages"


@pytest.mark.req("SEG-MSG-010")
@pytest.mark.parametrize("codec", range(1, 8))
def test_no_wrapper_inside_a_wrapper(codec: int) -> None:
    inner = wrapper(message(1), offset=1, attributes=codec)
    error = refusal(wrapper(message(0), inner, offset=1))
    assert error.requirements == ("SEG-MSG-010",)
    assert error.location.field == "messages[1].attributes"


@pytest.mark.req("SEG-MSG-011")
def test_offsets_in_a_magic_0_wrapper_are_absolute() -> None:
    assert fields(vector("V-03")) == THREE
    assert offsets(wrapper(message(3), message(8), offset=100)) == [3, 8]


@pytest.mark.req("SEG-MSG-012")
def test_offsets_in_a_magic_1_wrapper_are_relative() -> None:
    assert fields(vector("V-04")) == THREE
    inner = [message(offset, magic=1) for offset in (2, 3, 7)]
    assert offsets(wrapper(*inner, offset=107, magic=1)) == [102, 103, 107]
    assert offsets(wrapper(*inner, offset=7, magic=1)) == [2, 3, 7]


@pytest.mark.req("SEG-MSG-013")
def test_offset_0_of_a_wrapper() -> None:
    data = wrapper(*(message(offset, magic=1) for offset in (0, 1, 5)), offset=0, magic=1)
    assert offsets(data) == [0, 1, 5]
    assert found(data) == []


@pytest.mark.req("SEG-MSG-014")
@pytest.mark.parametrize("offset", [1, 4])
def test_wrapper_offset_below_the_last_relative_one(offset: int) -> None:
    error = refusal(wrapper(message(0, magic=1), message(5, magic=1), offset=offset, magic=1))
    assert error.requirements == ("SEG-MSG-014",)
    assert (error.location.field, error.location.position) == ("offset", 0)


@pytest.mark.req("SEG-MSG-015")
def test_timestamps_in_a_wrapper() -> None:
    inner = [message(0, magic=1, timestamp_ms=7, attributes=LOG_APPEND_TIME), message(1, magic=1, timestamp_ms=-1)]
    stamped = wrapper(*inner, offset=9, magic=1, attributes=SNAPPY | LOG_APPEND_TIME, timestamp_ms=5000)
    assert times(stamped) == [5000, 5000]
    assert [one.stored_timestamp_ms for one in messages(stamped)] == [7, -1]
    assert times(wrapper(*inner, offset=9, magic=1, timestamp_ms=5000)) == [7, -1]
    assert times(vector("V-05")) == [5000, 5000]
    assert times(vector("V-04")) == [1000, 1005, 1003]


@pytest.mark.req("SEG-MSG-016")
def test_checksums_inside_a_wrapper() -> None:
    data = wrapper(message(0), message(1, crc=1), message(2), offset=2)
    assert [one.is_valid for one in messages(data)] == [True, False, True]
    assert messages(data)[1].crc == 1
    with pytest.raises(CorruptRecordError) as caught:
        decode_batch(data)
    assert caught.value.requirements == ("SEG-MSG-016",)
    assert caught.value.location.field == "messages[1].crc"
    findings = list(verify_log(data))
    assert [finding.requirement for finding in findings] == ["SEG-MSG-016"]
    assert findings[0].location.field == "messages[1].crc"


@pytest.mark.req("SEG-MSG-017")
def test_magic_of_wrapper_and_message_differ() -> None:
    old_in_new = wrapper(message(0), message(2, b"k", b"vv"), offset=12, magic=1, timestamp_ms=-1)
    assert fields(old_in_new) == [(10, None, b"a"), (12, b"k", b"vv")]
    assert [one.magic for one in messages(old_in_new)] == [0, 0]
    new_in_old = wrapper(message(10, magic=1, timestamp_ms=7), message(12, magic=0), offset=12)
    assert offsets(new_in_old) == [10, 12]
    assert times(new_in_old) == [7, -1]
    assert [one.magic for one in messages(new_in_old)] == [1, 0]


@pytest.mark.req("SEG-MSG-018")
@pytest.mark.parametrize("magic", [0, 1])
def test_no_zstd(magic: int) -> None:
    error = refusal(message(0, None, b"\x28\xb5\x2f\xfd", magic=magic, attributes=ZSTD))
    assert error.requirements == ("SEG-MSG-018",)
    assert (error.location.field, error.location.position) == ("attributes", 17)


@pytest.mark.req("SEG-COD-001")
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_undefined_codecs_are_refused_when_decoding(codec: int) -> None:
    data = message(0, attributes=codec)
    assert frame(data).header.codec_id == codec
    assert refusal(data).requirements == ("SEG-COD-001",)


@pytest.mark.req("SEG-MSG-019")
@each_of("cut", range(1, 27))
def test_last_message_cut_short_is_dropped(cut: int) -> None:
    data = wrapper(message(10), message(11)[:cut], offset=11)
    assert offsets(data) == [10]
    assert read(data).dropped_size == cut
    assert "SEG-MSG-019" in found(data)


@pytest.mark.req("SEG-MSG-019")
def test_size_beyond_the_wrapper_is_a_cut() -> None:
    huge = struct.pack(">qi", 11, 2**31 - 1) + bytes(40)
    assert offsets(wrapper(message(10), huge, offset=11)) == [10]


@pytest.mark.req("SEG-MSG-020")
def test_attribute_bits_without_a_meaning() -> None:
    for data in (message(attributes=8), message(attributes=-128), message(magic=1, attributes=0x10)):
        assert found(data) == ["SEG-MSG-020"]
        assert fields(data) == [(0, None, b"a")]
    assert found(message(magic=1, attributes=LOG_APPEND_TIME)) == []
    assert messages(message(attributes=8))[0].attributes == 8


@pytest.mark.req("SEG-MSG-021")
def test_wrapper_timestamp_is_the_largest() -> None:
    inner = [message(0, magic=1, timestamp_ms=9), message(1, magic=1, timestamp_ms=3)]
    assert found(wrapper(*inner, offset=1, magic=1, timestamp_ms=3)) == ["SEG-MSG-021"]
    assert found(wrapper(*inner, offset=1, magic=1, timestamp_ms=9)) == []
    assert found(wrapper(*inner, offset=1, magic=1, timestamp_ms=3, attributes=SNAPPY | LOG_APPEND_TIME)) == []


@pytest.mark.req("SEG-MSG-022")
@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_increase_within_a_wrapper(magic: int) -> None:
    twice = [message(5, magic=magic), message(5, magic=magic)]
    assert found(wrapper(*twice, offset=5, magic=magic)) == ["SEG-MSG-022"]
    assert found(wrapper(message(4, magic=magic), twice[0], offset=5, magic=magic)) == []


@pytest.mark.req("SEG-MSG-023")
def test_wrapper_key() -> None:
    data = wrapper(message(5), offset=5, key=b"")
    assert found(data) == ["SEG-MSG-023"]
    assert read(data).key == b""
    assert fields(data) == [(5, None, b"a")]


@pytest.mark.req("SEG-MSG-024")
def test_offset_of_a_magic_0_wrapper() -> None:
    assert found(wrapper(message(5), offset=6)) == ["SEG-MSG-024"]
    assert found(wrapper(message(5), offset=5)) == []


@pytest.mark.req("SEG-MSG-025")
def test_offsets_within_bounds() -> None:
    last = message(INT64_MAX)
    assert offsets(last) == [INT64_MAX]
    assert refusal(message(-1)).requirements == ("SEG-MSG-025",)
    assert refusal(wrapper(message(3), offset=-1)).requirements == ("SEG-MSG-025",)
    inner = [message(9, magic=1), message(3, magic=1)]
    over = refusal(wrapper(*inner, offset=INT64_MAX, magic=1))
    assert (over.requirements, over.location.field) == (("SEG-MSG-025",), "messages[0].offset")
    under = refusal(wrapper(message(-4, magic=1), message(3, magic=1), offset=5, magic=1))
    assert under.requirements == ("SEG-MSG-025",)
    assert refusal(wrapper(message(-4), message(3), offset=3)).requirements == ("SEG-MSG-025",)


@pytest.mark.req("SEG-MSG-026")
@pytest.mark.parametrize("magic", [2, 3, 127, -1, -128])
def test_magic_inside_a_wrapper(magic: int) -> None:
    inner = message(0, magic=1)
    inner = inner[:16] + struct.pack(">b", magic) + inner[17:]
    error = refusal(wrapper(inner, offset=0))
    assert error.requirements == ("SEG-MSG-026",)
    assert error.location.field == "messages[0].magic"


@pytest.mark.req("SEG-COD-016")
def test_output_limit() -> None:
    data = wrapper(message(0, value=bytes(2000)), offset=0)
    assert len(read(data, limit=2026).messages) == 1
    with pytest.raises(RefusedError) as caught:
        read(data, limit=2025)
    assert caught.value.requirements == ("SEG-COD-016",)


def shown(data: bytes | None) -> object:
    """Bytes as the expected lines show them."""
    if data is None:
        return None
    if len(data) > 256:
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return base64.b64encode(data).decode()


def entries(name: str) -> list[tuple[bytes, list[dict[str, Any]]]]:
    """Each undamaged entry of magic 0 or 1 in a case, with the records that Kafka reads from it."""
    lines = [line for line in authentic_expected(name) if line["type"] in {"batch", "record"}]
    records: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in lines:
        records.setdefault((line["file"], line["position"]), []).append(line)
    content = {line["file"]: (authentic(name) / line["file"]).read_bytes() for line in lines}
    return [
        (content[file][position : position + batch["sizeInBytes"]], rest)
        for (file, position), (batch, *rest) in records.items()
        if batch["magic"] < 2 and not batch.get("invalid")
    ]


@each_of("name", CASES)
def test_what_brokers_wrote(name: str) -> None:
    for data, expected in entries(name):
        entry = read(data, limit=2**26)
        assert [
            {
                "offset": one.offset,
                "timestamp": one.timestamp_ms,
                "key": shown(one.key),
                "value": shown(one.value),
                "crc": one.crc,
                "innerMagic": one.magic,
                "isValid": one.is_valid,
            }
            for one in entry.messages
        ] == [
            {key: line[key] for key in ("offset", "timestamp", "key", "value", "crc", "innerMagic", "isValid")}
            for line in expected
        ]
        assert (entry.trailing_size, entry.dropped_size, sum(entry.inner_trailing_sizes)) == (0, 0, 0)


RULES = ("SEG-LOG-", "SEG-BAT-", "SEG-MSG-", "SEG-COD-")
"""Chapters whose rules damaged messages break."""


def broken_rule(data: bytes) -> str | None:
    """Decode; return the rule that is broken, or None."""
    try:
        decode_batch(data)
    except FormatError as error:
        return error.requirements[0]
    return None


def decoded_count(data: bytes) -> int:
    """Decode with the checksum made right and without; count what has messages, and expect broken rules of the rest."""
    variants = (data, data[:12] + struct.pack(">I", zlib.crc32(data[16:])) + data[16:])
    for variant in variants:
        list(verify_log(variant))
    broken = [rule for variant in variants if (rule := broken_rule(variant))]
    assert all(rule.startswith(RULES) for rule in broken)
    return len(variants) - len(broken)


SMALL = ["V-01", "V-02", "V-03", "V-04", "V-05"]


@pytest.mark.parametrize("name", SMALL)
def test_every_truncation(name: str) -> None:
    data = vector(name)
    counts = [decoded_count(data[:end]) for end in range(len(data) + 1)]
    assert counts[0] == 0
    assert counts[-1] > 0


@pytest.mark.parametrize("name", SMALL)
def test_every_flipped_byte(name: str) -> None:
    data = vector(name)
    counts = [
        decoded_count(data[:position] + bytes([value]) + data[position + 1 :])
        for position in range(len(data))
        for value in {0x00, 0x7F, 0x80, 0xFF, data[position] ^ 1} - {data[position]}
    ]
    assert 0 < sum(counts) < len(counts)


def test_every_flipped_byte_inside_a_wrapper() -> None:
    inner = message(0, b"k", b"v", magic=1) + message(3, None, b"vv", magic=1) + message(4)
    changed = [
        inner[:position] + bytes([value]) + inner[position + 1 :]
        for position in range(len(inner))
        for value in (0x00, 0x7F, 0x80, 0xFF, inner[position] ^ 1)
    ]
    for contents in (changed, [inner[:end] for end in range(len(inner))]):
        counts = [decoded_count(wrapper(content, offset=100, magic=1)) for content in contents]
        assert {0, 2} <= set(counts)


@given(st.binary(max_size=120), st.integers(0, 1), st.integers(-(2**63), 2**63 - 1))
def test_any_bytes_inside_a_wrapper(content: bytes, magic: int, offset: int) -> None:
    decoded_count(wrapper(content, offset=offset, magic=magic))


NULLABLE = st.none() | st.binary(max_size=40)


@given(
    st.lists(st.tuples(st.integers(1, 9), NULLABLE, NULLABLE, st.integers(-1, 2**62)), min_size=1, max_size=8),
    st.integers(0, 2**62),
    st.booleans(),
)
def test_wrappers_round(rows: list[tuple[int, bytes | None, bytes | None, int]], base: int, stamped: bool) -> None:  # noqa: FBT001
    relative = [sum(step for step, *_ in rows[: index + 1]) for index in range(len(rows))]
    inner = [
        message(offset, key, value, magic=1, timestamp_ms=time)
        for offset, (_, key, value, time) in zip(relative, rows, strict=True)
    ]
    attributes = SNAPPY | (LOG_APPEND_TIME if stamped else 0)
    data = wrapper(*inner, offset=base + relative[-1], magic=1, attributes=attributes, timestamp_ms=77)
    read_back = messages(data)
    assert [one.offset for one in read_back] == [base + offset for offset in relative]
    assert [(one.key, one.value) for one in read_back] == [(key, value) for _, key, value, _ in rows]
    assert [one.timestamp_ms for one in read_back] == [77 if stamped else time for *_, time in rows]
    assert all(one.is_valid for one in read_back)


def test_errors_say_where() -> None:
    data = wrapper(message(0), message(1, attributes=LZ4), offset=1)
    with pytest.raises(CorruptRecordError) as caught:
        read_message_entry(frame(data), at=Location("00.log", 700))
    assert (
        str(caught.value) == "00.log:700: messages[1].attributes: expected no compression, found codec 3 [SEG-MSG-010]"
    )
