"""Encoding: the same bytes as Kafka where nothing is compressed, the same records where something is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.support import bundled, bundled_cases, vector
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec.compress import compress
from seglog_format.codec.compression import decompress
from seglog_format.codec.decode import decode_batch, decode_frame
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.record_model import RecordBatch

PLAIN = ["V-06", "V-07", "V-08", *(f"V-{number}" for number in range(13, 25))]
COMPRESSED = ["V-03", "V-04", "V-05", "V-09", "V-10", "V-11", "V-12"]


def without_sizes(batch: RecordBatch) -> tuple[object, ...]:
    """Everything that a different compressor leaves as it is."""
    if batch.header.magic == 2:
        header = replace(batch.header, batch_length=0, crc=0)
    else:
        header = replace(batch.header, message_size=0, crc=0)
    return header, batch.records


@pytest.mark.parametrize("name", PLAIN)
def test_plain_vectors_byte_for_byte(name: str) -> None:
    assert encode_batch(decode_batch(vector(name))) == vector(name)


@pytest.mark.parametrize("name", ["V-01", "V-02"])
def test_messages_byte_for_byte(name: str) -> None:
    data = vector(name)
    batches = [decode_frame(frame, at=Location()) for frame in walk(data)]
    assert b"".join(map(encode_batch, batches)) == data


@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed_vectors_field_by_field(name: str) -> None:
    decoded = decode_batch(vector(name))
    assert without_sizes(decode_batch(encode_batch(decoded))) == without_sizes(decoded)


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


@pytest.mark.parametrize("name", [name for name in bundled_cases() if "many" not in name])
def test_batches_that_brokers_wrote(name: str) -> None:
    for data, batch in batches(name):
        encoded = encode_batch(batch)
        if batch.header.codec_id == CompressionCodec.NONE:
            assert encoded == data
        else:
            assert without_sizes(decode_batch(encoded)) == without_sizes(batch)


@given(st.sampled_from(CompressionCodec), st.binary(max_size=300), st.integers(1, 1000))
def test_what_is_compressed_decompresses(codec: CompressionCodec, piece: bytes, times: int) -> None:
    data = piece * times
    assert decompress(codec, compress(codec, data, magic=2), magic=2, at=Location()) == data


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
