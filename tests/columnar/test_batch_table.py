"""The table of entries against the reference's walk, and the positions of fields against the schema."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numba")

from helpers.support import authentic, authentic_names, vector

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import walk
from seglog_format.columnar import layout
from seglog_format.columnar.batch_table import batch_table, sound_size
from seglog_format.errors import FormatError
from seglog_format.model import RecordBatchHeader
from seglog_format.schema import fixed_fields, message_set, record_batch

if TYPE_CHECKING:
    from seglog_format.model import Frame


@pytest.mark.parametrize("name", authentic_names())
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


@pytest.mark.parametrize("name", authentic_names())
def test_a_log_is_sound_up_to_the_first_entry_whose_checksum_is_wrong(name: str) -> None:
    for path in sorted(authentic(name).rglob("*.log")):
        data = path.read_bytes()
        sound = list(takewhile(checksum_is_valid, frames(data)))
        assert sound_size(data, first_offset=-(2**63) + 1) == (sound[-1].end if sound else 0)
        for frame in sound[:: max(1, len(sound) // 20)]:
            damaged = bytearray(data)
            damaged[frame.end - 1] ^= 1
            assert sound_size(damaged, first_offset=-(2**63) + 1) == frame.position


@pytest.mark.parametrize("data", [bytes(100), b"", b"\xff" * 100])
def test_nothing_is_sound_before_the_first_regular_entry(data: bytes) -> None:
    assert sound_size(data) == 0


def test_offsets_that_the_log_cannot_hold_are_not_sound() -> None:
    data = vector("V-01")
    found = frames(data)
    last = found[-1].header.last_offset
    assert sound_size(data, last_offset=last) == sound_size(data + data) == len(data)
    assert sound_size(data, last_offset=last - 1) == found[-1].position
    assert sound_size(data, first_offset=last + 1) == 0


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
    assert message_set.MESSAGE_MIN_SIZES[1] == layout.MIN_MESSAGE_V1_SIZE
