"""Encoding: the same bytes as Kafka where nothing is compressed, the same records where something is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.support import bundled, bundled_cases, vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec import reference
from seglog_format.codec.build import build_batch
from seglog_format.codec.compression import compress, decompress
from seglog_format.codec.decode import decode_batch, decode_frame
from seglog_format.codec.encode import encode_batch, encode_message, encode_record, encode_record_batch
from seglog_format.codec.framing import walk
from seglog_format.codec.side_files import encode_producer_snapshot
from seglog_format.engine import Engine
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.model import (
    CompressionCodec,
    MessageHeader,
    ProducerStateEntry,
    Record,
    RecordBatch,
    RecordBatchHeader,
    RecordHeader,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


PLAIN = ["V-06", "V-07", "V-08", *(f"V-{number}" for number in range(13, 25))]
COMPRESSED = ["V-03", "V-04", "V-05", "V-09", "V-10", "V-11", "V-12"]


def without_sizes(batch: RecordBatch) -> tuple[object, ...]:
    """Everything that a different compressor leaves as it is."""
    if batch.header.magic == 2:
        header = replace(batch.header, batch_length=0, crc=0)
    else:
        header = replace(batch.header, message_size=0, crc=0)
    return header, batch.records


def encoded(batch: RecordBatch) -> bytes:
    """Encode by the packers and by the declarations, which have to agree."""
    data = encode_batch(batch)
    assert encode_batch(batch, engine=Engine.REFERENCE) == data
    return data


@each_of("name", PLAIN)
def test_plain_vectors_byte_for_byte(name: str) -> None:
    assert encoded(decode_batch(vector(name))) == vector(name)


@pytest.mark.parametrize("name", ["V-01", "V-02"])
def test_messages_byte_for_byte(name: str) -> None:
    data = vector(name)
    batches = [decode_frame(frame, at=Location()) for frame in walk(data)]
    assert b"".join(map(encoded, batches)) == data


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_vectors_field_by_field(name: str) -> None:
    decoded = decode_batch(vector(name))
    assert without_sizes(decode_batch(encoded(decoded))) == without_sizes(decoded)


@pytest.mark.parametrize("name", ["V-03", "V-04", "V-09", "V-10", "V-11", "V-12"])
def test_frames_around_compressed_data_are_kafkas(name: str) -> None:
    """The first bytes of the compressed data: everything before the coding itself."""
    sizes = {"V-03": (34, 7), "V-04": (42, 7), "V-09": (61, 9), "V-10": (61, 16), "V-11": (61, 7), "V-12": (61, 6)}
    start, size = sizes[name]
    assert encode_batch(decode_batch(vector(name)))[start : start + size] == vector(name)[start : start + size]


@pytest.mark.parametrize("name", ["V-11", "V-12"])
def test_stored_blocks_leave_no_choice(name: str) -> None:
    assert encode_batch(decode_batch(vector(name))) == vector(name)


def batches(name: str) -> Iterator[tuple[bytes, RecordBatch]]:
    for path in sorted(bundled(name).rglob("*.log")):
        for frame in walk(path.read_bytes()):
            try:
                yield bytes(frame.data), decode_frame(frame, at=Location(str(path), frame.position))
            except FormatError:
                continue  # damaged on purpose


@each_of("name", [name for name in bundled_cases() if "many" not in name])
def test_batches_that_brokers_wrote(name: str) -> None:
    for data, batch in batches(name):
        made = encoded(batch)
        if batch.header.codec_id == CompressionCodec.NONE:
            assert made == data
        else:
            assert without_sizes(decode_batch(made)) == without_sizes(batch)


@given(st.sampled_from(CompressionCodec), st.binary(max_size=300), st.integers(1, 1000))
def test_what_is_compressed_decompresses(codec: CompressionCodec, piece: bytes, times: int) -> None:
    data = piece * times
    assert decompress(codec, compress(codec, data, magic=2), magic=2, at=Location()) == data


@pytest.mark.parametrize("codec", CompressionCodec)
def test_threads_and_views_get_the_same_compressed_bytes(codec: CompressionCodec) -> None:
    """Compressors are kept between batches, one for each thread."""
    contents = [bytes(range(number % 251)) * 999 for number in range(40)]
    alone = [compress(codec, content, magic=2) for content in contents]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda content: compress(codec, memoryview(content), magic=2), contents * 3)) == alone * 3


def test_what_cannot_be_written_is_the_callers_fault() -> None:
    batch, message = decode_batch(vector("V-06")), decode_batch(vector("V-01"))
    with pytest.raises(UsageError, match="SEG-MSG-018"):
        compress(CompressionCodec.ZSTD, b"", magic=1)
    with pytest.raises(UsageError, match="SEG-COD-001"):
        encode_batch(replace(batch, header=replace(batch.header, attributes=5)))
    with pytest.raises(UsageError, match="Record values only"):
        encode_batch(replace(batch, records=message.records))
    with pytest.raises(UsageError, match="one message, not 2"):
        encode_batch(replace(message, records=message.records * 2))


INT16, INT32, INT64 = (st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (16, 32, 64))
EDGES = [0, 1, 63, 64, 65, 2**13 - 1, 2**13, 2**20, 2**27, 2**31 - 1, 2**34, 2**62, 2**63 - 1]
BORDERS = sorted({sign * edge - below for edge in EDGES for sign in (1, -1) for below in (0, 1)})
DELTAS = st.sampled_from(BORDERS) | st.integers(-(2**63), 2**63 - 1)
DATA = st.none() | st.binary(max_size=200)
PACKED = st.builds(
    Record,
    offset=st.just(0),
    timestamp_ms=st.just(0),
    key=DATA,
    value=DATA,
    headers=st.lists(st.builds(RecordHeader, st.binary(max_size=70), DATA), max_size=70).map(tuple),
    attributes=st.integers(-128, 127),
    timestamp_delta=DELTAS,
    offset_delta=DELTAS.filter(lambda delta: -(2**31) <= delta < 2**31),
)


@given(PACKED)
def test_packed_records_are_those_of_the_declaration(record: Record) -> None:
    assert encode_record(record) == reference.encode_record(record)


HEADERS = st.builds(
    RecordBatchHeader,
    base_offset=INT64,
    batch_length=st.just(0),
    partition_leader_epoch=INT32,
    magic=st.just(2),
    crc=st.just(0),
    attributes=st.integers(-(2**15), 2**15 - 1),
    last_offset_delta=INT32,
    base_timestamp_ms=INT64,
    max_timestamp_ms=INT64,
    producer_id=INT64,
    producer_epoch=INT16,
    base_sequence=INT32,
    records_count=INT32,
)
MESSAGE_HEADERS = st.builds(
    MessageHeader,
    offset=INT64,
    message_size=st.just(0),
    crc=st.just(0),
    magic=st.integers(0, 1),
    attributes=st.integers(-128, 127),
    timestamp_ms=INT64,
)
PRODUCERS = st.builds(ProducerStateEntry, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64)


@given(HEADERS, st.binary(max_size=200))
def test_packed_batches_are_those_of_the_declaration(header: RecordBatchHeader, stored: bytes) -> None:
    assert encode_record_batch(header, stored) == reference.encode_record_batch(header, stored)


@given(MESSAGE_HEADERS, DATA, DATA)
def test_packed_messages_are_those_of_the_declaration(
    header: MessageHeader, key: bytes | None, value: bytes | None
) -> None:
    assert encode_message(header, key, value) == reference.encode_message(header, key, value)


@given(st.lists(PRODUCERS, max_size=3))
def test_packed_snapshots_are_those_of_the_declaration(producers: list[ProducerStateEntry]) -> None:
    assert encode_producer_snapshot(producers) == reference.encode_producer_snapshot(producers)


SOME = Record(0, 0, b"k", b"v")
TOO_LARGE = [
    (replace(SOME, offset_delta=2**31), "offset_delta: expected an integer of 32 bits"),
    (replace(SOME, offset_delta=-(2**31) - 1), "offset_delta: expected an integer of 32 bits"),
    (replace(SOME, timestamp_delta=2**63), "timestamp_delta: expected an integer of 64 bits"),
    (replace(SOME, timestamp_delta=-(2**63) - 1), "timestamp_delta: expected an integer of 64 bits"),
    (replace(SOME, attributes=128), "cannot hold its value"),
    (replace(SOME, headers=(RecordHeader(None, b""),)), "a header key cannot be null"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("record", "message"), TOO_LARGE)
def test_records_that_no_field_can_hold_are_refused(record: Record, message: str) -> None:
    built = build_batch([SOME])
    with pytest.raises(UsageError, match=message):
        encode_batch(replace(built, records=(record,)))
    with pytest.raises(UsageError, match="cannot hold its value"):
        encode_batch(replace(built, records=(record,)), engine=Engine.REFERENCE)
