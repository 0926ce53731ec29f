"""The table of entries against the reference's walk, and the positions of fields against the schema."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from helpers.support import authentic, authentic_names, vector
from helpers.walking import each_of
from helpers.whole_table import batch_table

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import walk
from seglog_format.columnar import layout
from seglog_format.errors import FormatError
from seglog_format.model import Frame, RecordBatchHeader
from seglog_format.schema import fixed_fields, message_set, record_batch


@each_of("name", authentic_names())
def test_the_table_equals_the_walk(name: str) -> None:
    for path in sorted(authentic(name).rglob("*.log")):
        assert_table_equals_walk(path.read_bytes())


def test_the_table_ends_where_an_entry_is_cut() -> None:
    data = vector("V-01")
    for size in range(len(data) * 2):
        assert_table_equals_walk((data * 2)[:size])


def assert_table_equals_walk(data: bytes) -> None:
    table, expected = batch_table(data, first_offset=-(2**63) + 1), list(frames(data))
    position = expected[-1].end if expected else 0
    assert (len(table), table.end) == (len(expected), position)
    for row, frame in zip(range(len(table)), expected, strict=True):
        for name, value in fields(frame).items():
            assert table.column(name)[row] == value, name


@each_of("name", authentic_names())
def test_each_checksum_is_verified(name: str) -> None:
    for path in sorted(authentic(name).rglob("*.log")):
        data = path.read_bytes()
        sound = [checksum_is_valid(frame) for frame in frames(data)]
        assert column(data, "crc_is_valid") == sound
        for number in range(0, len(sound), max(1, len(sound) // 20)):
            damaged = bytearray(data)
            damaged[frames(data)[number].end - 1] ^= 1
            wanted = [is_valid and each != number for each, is_valid in enumerate(sound)]
            assert column(bytes(damaged), "crc_is_valid") == wanted


def column(data: bytes, name: str) -> list[int]:
    return batch_table(data, first_offset=-(2**63) + 1).column(name).tolist()


@pytest.mark.parametrize("data", [bytes(100), b"", b"\xff" * 100])
def test_there_is_nothing_before_the_first_regular_entry(data: bytes) -> None:
    assert (len(batch_table(data)), batch_table(data).end) == (0, 0)


def test_the_table_ends_at_offsets_that_the_log_cannot_hold() -> None:
    data = vector("V-01")
    found = frames(data)
    last = found[-1].header.last_offset
    assert batch_table(data, last_offset=last).end == batch_table(data + data).end == len(data)
    assert batch_table(data, last_offset=last - 1).end == found[-1].position
    assert batch_table(data, first_offset=last + 1).end == 0


def frames(data: bytes) -> list[Frame]:
    """Entries as far as their offsets rise."""
    found: list[Frame] = []
    try:
        for frame in walk(data):
            if found and frame.header.last_offset <= found[-1].header.last_offset:
                break
            found.append(frame)
    except FormatError:
        pass
    return found


def fields(frame: Frame) -> dict[str, int]:
    header = frame.header
    common = {
        "position": frame.position,
        "size": header.size_in_bytes,
        "magic": header.magic,
        "last_offset": header.last_offset,
        "attributes": header.attributes,
        "crc": header.crc,
        "crc_is_valid": checksum_is_valid(frame),
        "max_timestamp_ms": header.max_timestamp_ms,
        "producer_id": header.producer_id,
        "base_sequence": header.base_sequence,
    }
    if isinstance(header, RecordBatchHeader):
        common |= {name: getattr(header, name) for name in ("base_offset", "base_timestamp_ms", "records_count")}
    return common


BATCH_FIELDS = {
    "base_offset": layout.OFFSET,
    "batch_length": layout.SIZE,
    "partition_leader_epoch": layout.LEADER_EPOCH,
    "magic": layout.MAGIC,
    "crc": layout.BATCH_CRC,
    "attributes": layout.BATCH_ATTRIBUTES,
    "last_offset_delta": layout.LAST_OFFSET_DELTA,
    "base_timestamp_ms": layout.BASE_TIMESTAMP,
    "max_timestamp_ms": layout.MAX_TIMESTAMP,
    "producer_id": layout.PRODUCER_ID,
    "producer_epoch": layout.PRODUCER_EPOCH,
    "base_sequence": layout.BASE_SEQUENCE,
    "records_count": layout.RECORDS_COUNT,
}


def test_fields_of_a_batch_stand_where_the_schema_says() -> None:
    assert {name: row.offset for name, row in record_batch.FIELDS.items()} == BATCH_FIELDS
    assert layout.BATCH_HEADER_SIZE == fixed_fields.RECORD_BATCH_HEADER_SIZE


def test_fields_of_a_message_stand_where_the_schema_says() -> None:
    from seglog_format.schema.fields import layout as rows

    stand = {row.name: row.offset for row in rows(message_set.MessageV1Header)}
    assert stand == {
        "offset": layout.OFFSET,
        "message_size": layout.SIZE,
        "crc": layout.MESSAGE_CRC,
        "magic": layout.MAGIC,
        "attributes": layout.MESSAGE_ATTRIBUTES,
        "timestamp_ms": layout.MESSAGE_TIMESTAMP,
    }
    assert layout.MESSAGE_V0_HEADER_SIZE == message_set.MESSAGE_V0_HEADER_SIZE
    assert layout.MESSAGE_V1_HEADER_SIZE == message_set.MESSAGE_V1_HEADER_SIZE
    assert fixed_fields.MESSAGE_MIN_SIZES[1] == layout.MIN_MESSAGE_V1_SIZE
