"""Chapter 34: what is accepted, refused and passed over in compressed data.

Streams come from Kafka (vectors, broker directories), from compressors that the package does not use, or are written
out by hand; so do the expected contents.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import subprocess
import sys
import zlib
from functools import partial
from itertools import islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import cramjam
import lz4.block
import lz4.frame
import pytest
import xxhash
import zstandard
from helpers.bombs import BOMBS, MEBIBYTE
from helpers.decoders import answer, decode_batch
from helpers.support import REPOSITORY, authentic, authentic_expected, bundled_cases, vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec.compression import decompress, trailing_size
from seglog_format.codec.reference import CONTAINERS
from seglog_format.errors import CorruptRecordError, FormatError, Location, RefusedError
from seglog_format.schema import compression as schema
from seglog_format.schema.fields import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from construct import Struct

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
AT = Location("a.log", 100, "records")
PACKAGE = "seglog_format.codec.compression"

RECORDS = vector("V-06")[61:]
STREAMS = {GZIP: vector("V-09")[61:], SNAPPY: vector("V-10")[61:], LZ4: vector("V-11")[61:], ZSTD: vector("V-12")[61:]}
"""The same three records, compressed by Kafka."""

XERIAL_HEADER = bytes.fromhex("82534e41505059000000000100000001")
LZ4_HEADER = bytes.fromhex("04224d18604082")
END_MARK = bytes(4)


def by_both(call: Callable[..., Any], codec: int, data: bytes | memoryview, **options: Any) -> Any:  # noqa: ANN401
    """Read the headers by their declarations and by the plain loops, which have to agree."""
    ask = partial(call, codec, data, at=AT, **options)
    assert answer(partial(ask, headers=CONTAINERS)) == answer(ask)
    return ask()


def decompressed(codec: int, data: bytes | memoryview, *, magic: int = 2, **limit: int) -> bytes:
    return bytes(by_both(decompress, codec, data, magic=magic, **limit))


def trailing(codec: int, data: bytes) -> int:
    return int(by_both(trailing_size, codec, data, magic=2))


def refusal(codec: int, data: bytes, *, magic: int = 2) -> str:
    """Return the requirement of the error, the field below ``records``, and its position in the data."""
    with pytest.raises(CorruptRecordError) as caught:
        decompressed(codec, data, magic=magic)
    where = caught.value.location
    assert where.path == AT.path
    return f"{caught.value.requirements[0]} {where.field.removeprefix('records.')} {where.position - AT.position}"


def int_be(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def int_le(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little")


def snappy_raw(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(content))


def xerial(content: bytes, block_size: int = 1024) -> bytes:
    blocks = [content[start : start + block_size] for start in range(0, len(content), block_size)] or [b""]
    stored = [snappy_raw(block) for block in blocks]
    return XERIAL_HEADER + b"".join(int_be(len(block)) + block for block in stored)


def lz4_frame(content: bytes, **options: int) -> bytes:
    defaults = {"block_linked": False, "store_size": False, "block_size": lz4.frame.BLOCKSIZE_MAX64KB}
    return lz4.frame.compress(content, **(defaults | options))


def lz4_blocks(*blocks: bytes, header: bytes = LZ4_HEADER, end: bytes = END_MARK) -> bytes:
    """Return a frame of stored blocks."""
    return header + b"".join(int_le(len(block) | 1 << 31) + block for block in blocks) + end


def lz4_header(flags: int, descriptor: int, extra: bytes = b"") -> bytes:
    fields = bytes([flags, descriptor]) + extra
    return bytes.fromhex("04224d18") + fields + bytes([xxhash.xxh32_intdigest(fields) >> 8 & 0xFF])


def zstd(content: bytes, **options: object) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(content)


def zstd_block(kind: int, size: int, data: bytes, *, last: bool = True) -> bytes:
    return int_le(size << 3 | kind << 1 | last, 3) + data


def zstd_header(descriptor: int, *fields: bytes) -> bytes:
    return bytes.fromhex("28b52ffd") + bytes([descriptor]) + b"".join(fields)


COMPRESSORS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (GZIP, lambda content: gzip.compress(content, mtime=0)),
    "gzip-named": (GZIP, lambda content: gzip_member(content, flags=0x1E)),
    "gzip-stored": (GZIP, lambda content: gzip.compress(content, 0, mtime=1)),
    "snappy-bare": (SNAPPY, snappy_raw),
    "snappy-xerial": (SNAPPY, xerial),
    "snappy-large-blocks": (SNAPPY, lambda content: xerial(content, 32768)),
    "lz4": (LZ4, lz4_frame),
    "lz4-checksums": (LZ4, lambda content: lz4_frame(content, content_checksum=True, block_checksum=True)),
    "lz4-sized": (LZ4, lambda content: lz4_frame(content, store_size=True, compression_level=9)),
    "lz4-4mb": (LZ4, lambda content: lz4_frame(content, block_size=lz4.frame.BLOCKSIZE_MAX4MB)),
    "zstd": (ZSTD, zstd),
    "zstd-streamed": (ZSTD, lambda content: zstd(content, write_content_size=False)),
    "zstd-checksum": (ZSTD, lambda content: zstd(content, level=19, write_checksum=True)),
}


def gzip_member(content: bytes, flags: int = 0, *, os: int = 255) -> bytes:
    """Return a member with the optional header fields that the flags announce."""
    header = bytes([0x1F, 0x8B, 8, flags, 1, 2, 3, 4, 0, os])
    header += b"\x05\x00extra" if flags & 4 else b""
    header += b"name\0" if flags & 8 else b""
    header += b"a comment\0" if flags & 16 else b""
    header += int_le(zlib.crc32(header) & 0xFFFF, 2) if flags & 2 else b""
    deflater = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = deflater.compress(content) + deflater.flush()
    return header + body + int_le(zlib.crc32(content)) + int_le(len(content))


# Every codec


@pytest.mark.parametrize("codec", STREAMS)
def test_streams_that_kafka_wrote(codec: int) -> None:
    assert decompressed(codec, STREAMS[codec]) == RECORDS
    assert decompressed(codec, memoryview(bytearray(STREAMS[codec]))) == RECORDS
    assert trailing(codec, STREAMS[codec]) == 0


def test_no_codec_changes_nothing() -> None:
    assert decompressed(NONE, RECORDS) == RECORDS
    assert decompressed(NONE, RECORDS, magic=0) == RECORDS
    assert trailing(NONE, RECORDS) == 0


@pytest.mark.req("SEG-COD-001")
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_undefined_codec(codec: int) -> None:
    assert refusal(codec, RECORDS) == "SEG-COD-001 codec 0"


@pytest.mark.req("SEG-MSG-018")
@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_younger_than_wrappers(magic: int) -> None:
    assert refusal(ZSTD, STREAMS[ZSTD], magic=magic) == "SEG-MSG-018 codec 0"


CONTENTS = {
    "nothing": b"",
    "one byte": b"\0",
    "zeros": bytes(200_000),
    "text": b"segment " * 20_000,
    "noise": hashlib.shake_128(b"seed").digest(150_000),
}


@pytest.mark.parametrize("name", COMPRESSORS)
@each_of("content_name", CONTENTS)
def test_other_compressors(name: str, content_name: str) -> None:
    (codec, compress), content = COMPRESSORS[name], CONTENTS[content_name]
    assert decompressed(codec, compress(content)) == content
    assert trailing(codec, compress(content)) == 0


repetitive = st.builds(lambda piece, count, tail: piece * count + tail, st.binary(), st.integers(0, 99), st.binary())


@pytest.mark.parametrize("name", COMPRESSORS)
@given(content=repetitive)
def test_round_trips(name: str, content: bytes) -> None:
    codec, compress = COMPRESSORS[name]
    assert decompressed(codec, compress(content)) == content


@pytest.mark.parametrize("name", COMPRESSORS)
@given(data=st.data())
def test_a_changed_stream_is_decoded_or_refused(name: str, data: st.DataObject) -> None:
    codec, compress = COMPRESSORS[name]
    stream = bytearray(compress(b"segments of a log " * 30))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    outcome(codec, bytes(stream))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@given(data=st.binary(max_size=100))
def test_any_bytes_are_decoded_or_refused(codec: int, data: bytes) -> None:
    outcome(codec, data)
    outcome(codec, STREAMS[codec][:16] + data)


def outcome(codec: int, data: bytes, magic: int = 2) -> bytes | None:
    try:
        return decompress(codec, data, magic=magic, at=AT, limit=2**22)
    except FormatError as error:
        return pytest.fail(str(error)) if not error.requirements[0].startswith("SEG-COD-") else None


# Cut and changed streams


SMALL = b"segment log " * 9
CUT = {name: (codec, compress(SMALL)) for name, (codec, compress) in COMPRESSORS.items()}
CUT |= {f"kafka-{codec}": (codec, stream) for codec, stream in STREAMS.items()}


@pytest.mark.req(
    "SEG-COD-002", "SEG-COD-003", "SEG-COD-004", "SEG-COD-006", "SEG-COD-009", "SEG-COD-010", "SEG-COD-014"
)
@each_of(("codec", "stream"), CUT.values())
def test_a_stream_cut_anywhere_is_refused(codec: int, stream: bytes) -> None:
    kept = {size: found for size in range(len(stream)) if (found := outcome(codec, stream[:size])) is not None}
    only_header = range(16, 20) if stream.startswith(XERIAL_HEADER) else ()
    assert kept == dict.fromkeys(only_header, b"")


def flipped(data: bytes) -> Iterator[tuple[int, bytes]]:
    for position in range(len(data)):
        for bit in range(8):
            yield position, data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]


UNUSED_GZIP_BYTES = {*range(3, 10), 37}
"""Unused flags, time, extra flags, operating system; and the byte that the deflated data fills in part only."""


def test_a_flipped_bit_of_gzip_is_refused_or_changes_nothing() -> None:
    accepted = {position for position, data in flipped(STREAMS[GZIP]) if outcome(GZIP, data) is not None}
    assert accepted <= UNUSED_GZIP_BYTES
    assert {outcome(GZIP, data) for position, data in flipped(STREAMS[GZIP]) if position in accepted} <= {RECORDS, None}


def test_a_flipped_bit_of_the_frame_of_lz4_is_refused() -> None:
    free = {*range(11, 11 + len(RECORDS)), len(STREAMS[LZ4]) - 1}
    """The records, stored as they are, and the top bit of the end mark."""
    assert {position for position, data in flipped(STREAMS[LZ4]) if outcome(LZ4, data) is not None} == free


@pytest.mark.parametrize("codec", [SNAPPY, ZSTD])
def test_a_flipped_bit_is_decoded_or_refused(codec: int) -> None:
    assert any(outcome(codec, data) is not None for _, data in flipped(STREAMS[codec]))


# gzip


@pytest.mark.req("SEG-COD-002")
@each_of("flags", range(0x20))
def test_optional_fields_of_a_gzip_header(flags: int) -> None:
    member = gzip_member(SMALL, flags)
    assert gzip.decompress(member) == SMALL
    assert decompressed(GZIP, member) == SMALL


@pytest.mark.parametrize("flags", [0x20, 0x40, 0x80])
def test_unused_gzip_flags_mean_nothing(flags: int) -> None:
    assert decompressed(GZIP, gzip_member(SMALL, flags)) == SMALL


@pytest.mark.req("SEG-COD-002")
@pytest.mark.parametrize(
    ("position", "value", "failed_field"),
    [
        (0, 0x1E, "gzip.magic 0"),
        (2, 7, "gzip.method 2"),
        (10, 0x07, "gzip.data 0"),
        (-8, 0, "gzip.trailer 38"),
        (-1, 1, "gzip.trailer 38"),
    ],
)
def test_damaged_gzip_member(position: int, value: int, failed_field: str) -> None:
    data = bytearray(STREAMS[GZIP])
    data[position] = value
    assert refusal(GZIP, bytes(data)) == f"SEG-COD-002 {failed_field}"


@pytest.mark.req("SEG-COD-002")
@pytest.mark.parametrize(
    ("size", "failed_field"),
    [
        (0, "gzip.magic 0"),
        (5, "gzip.modification_time 4"),
        (12, "gzip.header 0"),
        (20, "gzip.header 0"),
        (33, "gzip.header 0"),
        (34, "gzip.data 34"),
        (-8, "gzip.trailer.crc -8"),
        (-1, "gzip.trailer.size -4"),
    ],
)
def test_gzip_member_cut_short(size: int, failed_field: str) -> None:
    member = gzip_member(SMALL, 0x1E)
    field, _, position = failed_field.rpartition(" ")
    counted = int(position) if int(position) >= 0 else len(member) + int(position)
    assert refusal(GZIP, member[:size]) == f"SEG-COD-002 {field} {counted}"


@pytest.mark.req("SEG-COD-002")
def test_gzip_header_checksum() -> None:
    member = gzip_member(SMALL, 2)
    assert refusal(GZIP, member[:4] + b"\0" + member[5:]) == "SEG-COD-002 gzip.header_checksum 10"


@pytest.mark.req("SEG-COD-017")
@pytest.mark.parametrize("count", [2, 3, 50])
def test_gzip_members_follow_each_other(count: int) -> None:
    members = [gzip_member(b"%d " % number * number, number & 0x1E) for number in range(count)]
    assert decompressed(GZIP, b"".join(members)) == gzip.decompress(b"".join(members))
    assert trailing(GZIP, b"".join(members)) == 0


@pytest.mark.req("SEG-COD-017")
def test_empty_gzip_members_count() -> None:
    nothing = gzip.compress(b"", mtime=0)
    assert decompressed(GZIP, nothing + nothing + STREAMS[GZIP] + nothing) == RECORDS


@pytest.mark.req("SEG-COD-002")
def test_damage_in_a_later_gzip_member_is_no_trailing_junk() -> None:
    member = STREAMS[GZIP]
    assert refusal(GZIP, member * 2 + member[:30]) == f"SEG-COD-002 gzip.data {2 * len(member) + 30}"
    assert refusal(GZIP, member + member[:-1] + b"\1") == f"SEG-COD-002 gzip.trailer {2 * len(member) - 8}"


@pytest.mark.parametrize("junk", [b"\0", bytes(100), b"\x1f", b"\x1f\x8b\x07" + bytes(40), b"text" * 10])
def test_what_follows_a_gzip_member_is_passed_over(junk: bytes) -> None:
    assert decompressed(GZIP, STREAMS[GZIP] + junk) == RECORDS
    assert trailing(GZIP, STREAMS[GZIP] + junk) == len(junk)


def test_too_few_bytes_for_a_gzip_member_are_passed_over() -> None:
    member = STREAMS[GZIP]
    assert decompressed(GZIP, member + member[:18]) == RECORDS
    assert trailing(GZIP, member + member[:18]) == 18
    assert refusal(GZIP, member + member[:19]) == f"SEG-COD-002 gzip.data {len(member) + 19}"


@pytest.mark.req("SEG-COD-002")
def test_incomplete_codes_are_no_deflated_data() -> None:
    """A set of distance codes that leaves some bits without meaning: never met while decoding, and refused by Java."""
    content = b"aabcacbcccaabcaac"
    body = bytes.fromhex("05c1010100000082a0ade4ff0f054bab5874")
    member = STREAMS[GZIP][:10] + body + int_le(zlib.crc32(content)) + int_le(len(content))
    assert refusal(GZIP, member) == "SEG-COD-002 gzip.data 0"


def test_gzip_data_longer_than_what_is_fed_at_a_time() -> None:
    content = hashlib.shake_128(b"long").digest(300_000) + bytes(5 * MEBIBYTE)
    member = gzip.compress(content, mtime=0)
    assert decompressed(GZIP, member + member) == content + content


# snappy


@pytest.mark.req("SEG-COD-003")
@pytest.mark.parametrize(
    ("blocks", "failed_field"),
    [
        (int_be(0), "snappy.block 20"),
        (int_be(-1) + b"\0" * 8, "snappy.block_size 16"),
        (int_be(-(2**31)) + b"\0" * 8, "snappy.block_size 16"),
        (int_be(2**31 - 1) + b"\0", "snappy.block_size 16"),
        (int_be(3) + b"\x01\x00", "snappy.block_size 16"),
        (int_be(3) + b"\x02\x00a", "snappy.block 20"),
        (int_be(1) + b"\x80", "snappy.block 20"),
        (int_be(3) + b"\x01\x00a" + int_be(2) + b"\x01\x04", "snappy.block 27"),
        (int_be(3) + b"\x01\x00a" + XERIAL_HEADER[:8] + b"\0\0\0", "snappy.header 23"),
    ],
)
def test_damaged_xerial_blocks(blocks: bytes, failed_field: str) -> None:
    assert refusal(SNAPPY, XERIAL_HEADER + blocks) == f"SEG-COD-003 {failed_field}"


@pytest.mark.req("SEG-COD-003")
def test_a_xerial_header_alone_is_no_bytes() -> None:
    assert refusal(SNAPPY, XERIAL_HEADER[:15]) == "SEG-COD-003 snappy.header 0"
    assert outcome(SNAPPY, XERIAL_HEADER) == outcome(SNAPPY, XERIAL_HEADER + b"\0\0\0") == b""


@pytest.mark.req("SEG-COD-003")
def test_a_xerial_block_may_have_any_size() -> None:
    content = b"segment log" * 10_000
    for block_size in (1, 1000, 32768, 65536, len(content)):
        assert decompressed(SNAPPY, xerial(content[: block_size * 50], block_size)) == content[: block_size * 50]


@pytest.mark.req("SEG-COD-004")
@pytest.mark.parametrize("content", [b"", b"a", RECORDS, b"segment" * 1000, bytes(100_000)])
def test_bare_snappy(content: bytes) -> None:
    assert decompressed(SNAPPY, snappy_raw(content)) == content
    assert decompressed(SNAPPY, snappy_raw(content), magic=0) == content


@pytest.mark.req("SEG-COD-004")
@pytest.mark.parametrize(
    ("block", "content"),
    [
        (b"\x01\xf0\x00a", b"a"),
        (b"\x02\xf0\x01ab", b"ab"),
        (b"\x01\xf4\x00\x00a", b"a"),
        (b"\x03\x00a\xf0\x01bc", b"abc"),
        (b"\x80\x01\xf0\x7d" + b"s" * 126 + b"\xf0\x01bc", b"s" * 126 + b"bc"),
    ],
)
def test_a_short_literal_at_the_end_may_have_its_size_behind_the_tag(block: bytes, content: bytes) -> None:
    """Kafka 4.1.1 reads these, by snappy-java 1.1.10, and so does Go's library; the library of ours does not."""
    assert decompressed(SNAPPY, block) == content
    assert decompressed(SNAPPY, XERIAL_HEADER + int_be(len(block)) + block) == content


@pytest.mark.req("SEG-COD-004")
@pytest.mark.parametrize(
    "block", [b"\x05\x0c\xf0\x00a", b"\x03\xf0\x01ab", b"\x01\xf0\x01ab", b"\x03\xf0\x00", b"\xf0\x00a"]
)
def test_what_only_looks_like_a_short_literal_at_the_end_is_damaged(block: bytes) -> None:
    assert refusal(SNAPPY, block) == "SEG-COD-004 snappy.block 0"


@pytest.mark.req("SEG-COD-004")
@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"\x01", b"\x01\x00ab", b"\x02\x00a", snappy_raw(RECORDS) * 2, XERIAL_HEADER[:7] + b"\1" * 99],
)
def test_damaged_bare_snappy(data: bytes) -> None:
    assert refusal(SNAPPY, data) == "SEG-COD-004 snappy.block 0"


@pytest.mark.req("SEG-COD-005")
def test_repeated_xerial_header() -> None:
    stream = STREAMS[SNAPPY]
    assert decompressed(SNAPPY, stream * 3) == RECORDS * 3
    assert decompressed(SNAPPY, stream + XERIAL_HEADER) == RECORDS
    assert decompressed(SNAPPY, XERIAL_HEADER * 2 + stream[16:]) == RECORDS


@pytest.mark.req("SEG-COD-005")
@pytest.mark.parametrize("version", [0, 2, -1, 2**31 - 1])
def test_xerial_versions_mean_nothing(version: int) -> None:
    header = XERIAL_HEADER[:8] + int_be(version) + int_be(version)
    assert decompressed(SNAPPY, header + STREAMS[SNAPPY][16:] + header + STREAMS[SNAPPY][16:]) == RECORDS * 2


@pytest.mark.parametrize("size", [1, 2, 3])
def test_bytes_too_few_for_a_xerial_length_are_passed_over(size: int) -> None:
    assert decompressed(SNAPPY, STREAMS[SNAPPY] + bytes(size)) == RECORDS
    assert trailing(SNAPPY, STREAMS[SNAPPY] + bytes(size)) == size


# lz4


@pytest.mark.req("SEG-COD-006")
@each_of(
    ("header", "failed_field"),
    [
        (bytes.fromhex("05224d18604082"), "lz4.magic 0"),
        (bytes.fromhex("184d2204604082"), "lz4.magic 0"),
        (bytes.fromhex("02214c18604082"), "lz4.magic 0"),
        (lz4_header(0x40, 0x40), "lz4.flags 4"),
        (lz4_header(0x20, 0x40), "lz4.flags 4"),
        (lz4_header(0xA0, 0x40), "lz4.flags 4"),
        (lz4_header(0xE0, 0x40), "lz4.flags 4"),
        (lz4_header(0x61, 0x40), "lz4.flags 4"),
        (lz4_header(0x62, 0x40), "lz4.flags 4"),
        (lz4_header(0x60, 0x30), "lz4.block_descriptor 5"),
        (lz4_header(0x60, 0x00), "lz4.block_descriptor 5"),
        (lz4_header(0x60, 0xC0), "lz4.block_descriptor 5"),
        (lz4_header(0x60, 0x48), "lz4.block_descriptor 5"),
        (lz4_header(0x60, 0x41), "lz4.block_descriptor 5"),
    ],
)
def test_lz4_headers_that_no_broker_reads(header: bytes, failed_field: str) -> None:
    assert refusal(LZ4, lz4_blocks(RECORDS, header=header)) == f"SEG-COD-006 {failed_field}"


@pytest.mark.req("SEG-COD-006")
def test_linked_lz4_blocks() -> None:
    assert refusal(LZ4, lz4_frame(SMALL * 1000, block_linked=True)) == "SEG-COD-006 lz4.flags 4"


@pytest.mark.req("SEG-COD-006")
@pytest.mark.parametrize("size", range(7))
def test_lz4_header_cut_short(size: int) -> None:
    assert refusal(LZ4, LZ4_HEADER[:size]).startswith("SEG-COD-00")


@pytest.mark.req("SEG-COD-007", "SEG-COD-008")
@pytest.mark.parametrize("checksum", [0x1A, 0x00, 0x83])
def test_lz4_header_checksum(checksum: int) -> None:
    stream = STREAMS[LZ4][:6] + bytes([checksum]) + STREAMS[LZ4][7:]
    assert refusal(LZ4, stream) == refusal(LZ4, stream, magic=1) == "SEG-COD-007 lz4.header_checksum 6"
    assert decompressed(LZ4, stream, magic=0) == RECORDS


@pytest.mark.req("SEG-COD-007", "SEG-COD-008")
def test_wrappers_that_kafka_wrote() -> None:
    old, new = vector("V-03")[26:], vector("V-04")[34:]
    assert decompressed(LZ4, old, magic=0) == vector("V-01")
    assert refusal(LZ4, old, magic=1) == "SEG-COD-007 lz4.header_checksum 6"
    assert len(decompressed(LZ4, new, magic=1)) == len(decompressed(LZ4, new, magic=0)) == len(vector("V-02"))


@pytest.mark.req("SEG-COD-009")
@pytest.mark.parametrize(
    ("blocks", "failed_field"),
    [
        (int_le(5) + b"\x10a", "lz4.block 11"),
        (int_le(5 | 1 << 31) + b"abcd", "lz4.block 11"),
        (int_le(65537) + bytes(65537), "lz4.block 11"),
        (int_le(65537 | 1 << 31) + bytes(65537), "lz4.block 11"),
        (int_le(2**31 - 1) + bytes(9), "lz4.block 11"),
        (int_le(2**32 - 1) + bytes(9), "lz4.block 11"),
        (int_le(2) + b"\x20a" + END_MARK, "lz4.block 11"),
        (int_le(3) + b"\x00\x01\x00" + END_MARK, "lz4.block 11"),
    ],
)
def test_damaged_lz4_blocks(blocks: bytes, failed_field: str) -> None:
    assert refusal(LZ4, LZ4_HEADER + blocks) == f"SEG-COD-009 {failed_field}"


@pytest.mark.req("SEG-COD-009")
def test_an_lz4_block_decodes_to_the_block_size_at_most() -> None:
    fits, too_long = (lz4.block.compress(bytes(size), store_size=False) for size in (65536, 65537))
    assert decompressed(LZ4, LZ4_HEADER + int_le(len(fits)) + fits + END_MARK) == bytes(65536)
    assert refusal(LZ4, LZ4_HEADER + int_le(len(too_long)) + too_long + END_MARK) == "SEG-COD-009 lz4.block 11"
    larger = lz4_header(0x60, 0x50)
    assert decompressed(LZ4, larger + int_le(len(too_long)) + too_long + END_MARK) == bytes(65537)


@pytest.mark.req("SEG-COD-009")
@pytest.mark.parametrize(("code", "size"), [(4, 2**16), (5, 2**18), (6, 2**20), (7, 2**22)])
def test_lz4_block_sizes(code: int, size: int) -> None:
    header = lz4_header(0x60, code << 4)
    assert decompressed(LZ4, lz4_blocks(bytes(size), header=header)) == bytes(size)
    assert refusal(LZ4, lz4_blocks(bytes(size + 1), header=header)) == "SEG-COD-009 lz4.block 11"


@pytest.mark.req("SEG-COD-010")
@pytest.mark.parametrize("size", range(4))
def test_lz4_end_mark_is_missing(size: int) -> None:
    stream = lz4_blocks(RECORDS, end=END_MARK[:size])
    assert refusal(LZ4, stream) == f"SEG-COD-010 lz4.block_size {len(stream) - size}"


@pytest.mark.req("SEG-COD-010")
def test_lz4_content_checksum_is_missing() -> None:
    stream = lz4_frame(SMALL, content_checksum=True)
    assert refusal(LZ4, stream[:-1]) == f"SEG-COD-010 lz4.content_checksum {len(stream) - 4}"


@pytest.mark.parametrize("extra", [b"\0", b"junk", LZ4_HEADER, STREAMS[LZ4]])
def test_what_follows_an_lz4_frame_is_passed_over(extra: bytes) -> None:
    assert decompressed(LZ4, STREAMS[LZ4] + extra) == RECORDS
    assert trailing(LZ4, STREAMS[LZ4] + extra) == len(extra)


@pytest.mark.req("SEG-COD-012")
def test_lz4_block_checksums() -> None:
    stream = lz4_frame(SMALL, block_checksum=True)
    assert decompressed(LZ4, stream) == SMALL
    position = len(stream) - 8
    for changed in (position, position + 3):
        wrong = stream[:changed] + bytes([stream[changed] ^ 1]) + stream[changed + 1 :]
        assert refusal(LZ4, wrong) == f"SEG-COD-012 lz4.block_checksum {position}"


@pytest.mark.req("SEG-COD-012")
def test_lz4_block_checksum_of_a_stored_block() -> None:
    header = lz4_header(0x70, 0x40)
    block = int_le(len(RECORDS) | 1 << 31) + RECORDS
    assert decompressed(LZ4, header + block + int_le(xxhash.xxh32_intdigest(RECORDS)) + END_MARK) == RECORDS
    assert refusal(LZ4, header + block + bytes(4) + END_MARK) == "SEG-COD-012 lz4.block_checksum 37"
    assert refusal(LZ4, header + block + b"\0") == "SEG-COD-012 lz4.block_checksum 37"


@pytest.mark.req("SEG-COD-013")
def test_lz4_content_checksum_is_not_compared() -> None:
    stream = lz4_frame(SMALL, content_checksum=True)
    assert decompressed(LZ4, stream[:-4] + b"junk") == SMALL
    assert trailing(LZ4, stream[:-4] + b"junk") == 0


@pytest.mark.req("SEG-COD-013")
@pytest.mark.parametrize("size", [0, 1, len(RECORDS), 2**64 - 1])
def test_lz4_content_size_is_not_compared(size: int) -> None:
    assert decompressed(LZ4, lz4_blocks(RECORDS, header=lz4_header(0x68, 0x40, int_le(size, 8)))) == RECORDS


@pytest.mark.req("SEG-COD-024")
def test_lz4_end_mark_with_the_top_bit_set() -> None:
    end = int_le(1 << 31)
    assert decompressed(LZ4, lz4_blocks(RECORDS, end=end)) == RECORDS
    assert trailing(LZ4, lz4_blocks(RECORDS, end=end + STREAMS[LZ4][7:])) == len(STREAMS[LZ4]) - 7


# zstd


@pytest.mark.req("SEG-COD-014")
@each_of(
    ("data", "failed_field"),
    [
        (b"", "zstd 0"),
        (bytes.fromhex("28b52ffe0058010000"), "zstd.magic 0"),
        (bytes.fromhex("27b52ffd0058010000"), "zstd.magic 0"),
        (zstd_header(0x08, b"\x58") + zstd_block(0, 0, b""), "zstd.descriptor 4"),
        (zstd_header(0x00, b"\x58") + zstd_block(3, 0, b""), "zstd.block 6"),
        (zstd_header(0x00, b"\x58") + zstd_block(0, 2**17 + 1, bytes(2**17 + 1)), "zstd.block 6"),
        (zstd_header(0x00, b"\x58") + zstd_block(1, 2**17 + 1, b"\0"), "zstd.block 6"),
        (zstd_header(0x00, b"\x00") + zstd_block(0, 1025, bytes(1025)), "zstd.block 6"),
        (zstd_header(0x20, b"\x03") + zstd_block(0, 4, b"abcd"), "zstd.block 6"),
        (zstd_header(0x00, b"\x58") + zstd_block(0, 4, b"abcd", last=False), "zstd.block 13"),
        (zstd_header(0x00, b"\x58") + zstd_block(0, 4, b"abc"), "zstd 0"),
        (zstd_header(0x04, b"\x58") + zstd_block(0, 4, b"abcd") + b"\1\2\3", "zstd 0"),
        (zstd_header(0x04, b"\x58") + zstd_block(0, 4, b"abcd") + b"\1\2\3\4", "zstd 0"),
        (zstd_header(0x00, b"\x58") + zstd_block(2, 4, b"\xff\xff\xff\xff"), "zstd 0"),
        (zstd_header(0x20, b"\x05") + zstd_block(0, 4, b"abcd"), "zstd 0"),
        (zstd_header(0x20, b"\x05") + zstd_block(2, 3, b"\0\0\0"), "zstd 0"),
        (STREAMS[ZSTD] + b"\0", f"zstd.magic {len(STREAMS[ZSTD])}"),
        (STREAMS[ZSTD] + b"junk" * 3, f"zstd.magic {len(STREAMS[ZSTD])}"),
    ],
)
def test_damaged_zstd_frames(data: bytes, failed_field: str) -> None:
    assert refusal(ZSTD, data) == f"SEG-COD-014 {failed_field}"


@pytest.mark.req("SEG-COD-014")
@pytest.mark.parametrize("content", [b"a", bytes(255), bytes(256), bytes(65791), bytes(65792), bytes(300_000)])
def test_zstd_content_size_of_every_width(content: bytes) -> None:
    for single in (True, False):
        parameters = zstandard.ZstdCompressionParameters(window_log=10 if not single else 20, write_content_size=True)
        assert decompressed(ZSTD, zstd(content, compression_params=parameters)) == content


@pytest.mark.req("SEG-COD-014")
@pytest.mark.parametrize("size", [27, 2**32, 2**64 - 1])
def test_zstd_content_size_that_no_such_frame_can_have(size: int) -> None:
    frame = zstd_header(0xE0, int_le(size, 8)) + zstd_block(0, 26, RECORDS)
    assert refusal(ZSTD, frame) == "SEG-COD-014 zstd 0"


@pytest.mark.req("SEG-COD-014")
def test_zstd_with_a_window_no_wider_than_needed() -> None:
    content = hashlib.shake_128(b"wide").digest(3000) * 400
    for window_log in (10, 17, 20, 27):
        parameters = zstandard.ZstdCompressionParameters(window_log=window_log, write_content_size=False)
        assert decompressed(ZSTD, zstd(content, compression_params=parameters)) == content


@pytest.mark.req("SEG-COD-015")
def test_zstd_frames_follow_each_other() -> None:
    frames = [STREAMS[ZSTD], zstd(SMALL), zstd(b""), zstd(SMALL, write_content_size=False, write_checksum=True)]
    assert decompressed(ZSTD, b"".join(frames)) == RECORDS + SMALL + SMALL
    assert trailing(ZSTD, b"".join(frames)) == 0


@pytest.mark.req("SEG-COD-023")
@pytest.mark.parametrize("kind", [0x50, 0x57, 0x5F])
def test_skippable_zstd_frames(kind: int) -> None:
    skippable = bytes([kind, 0x2A, 0x4D, 0x18]) + int_le(5) + b"12345"
    assert decompressed(ZSTD, skippable + STREAMS[ZSTD] + skippable + STREAMS[ZSTD] + skippable) == RECORDS * 2
    assert decompressed(ZSTD, skippable) == b""
    for size in range(4, len(skippable)):
        assert refusal(ZSTD, STREAMS[ZSTD] + skippable[:size]).startswith("SEG-COD-023 zstd")


@pytest.mark.req("SEG-COD-021")
@pytest.mark.parametrize(("code", "size"), [(1, 1), (2, 2), (3, 4)])
def test_zstd_dictionary(code: int, size: int) -> None:
    block = zstd_block(0, 26, RECORDS)
    assert refusal(ZSTD, zstd_header(code, b"\x58", int_le(7, size)) + block) == "SEG-COD-021 zstd 0"
    assert decompressed(ZSTD, zstd_header(code, b"\x58", int_le(0, size)) + block) == RECORDS


@pytest.mark.req("SEG-COD-022")
def test_zstd_window_limit() -> None:
    block = zstd_block(1, 2**17, b"a")
    widest, too_wide = (zstd_header(0, bytes([window])) for window in (17 << 3, 17 << 3 | 1))
    assert decompressed(ZSTD, widest + block) == b"a" * 2**17
    assert refusal(ZSTD, too_wide + block) == "SEG-COD-022 zstd 0"
    assert refusal(ZSTD, zstd_header(0, b"\xff") + block) == "SEG-COD-022 zstd 0"


@pytest.mark.req("SEG-COD-022")
def test_a_single_zstd_segment_is_its_own_window() -> None:
    blocks = [zstd_block(1, 2**17, b"a", last=number == 1024) for number in range(1025)]
    fits = zstd_header(0xA0, int_le(2**27)) + b"".join(blocks[1:])
    assert refusal(ZSTD, zstd_header(0xA0, int_le(2**27 + 2**17)) + b"".join(blocks)) == "SEG-COD-022 zstd 0"
    assert len(decompressed(ZSTD, fits)) == 2**27


# Limits


@pytest.mark.req("SEG-COD-016")
@pytest.mark.parametrize("name", COMPRESSORS)
@each_of("content", [b"a", SMALL, b"segment " * 20_000], ids=lambda content: f"{len(content)} bytes")
def test_the_limit_is_exact(name: str, content: bytes) -> None:
    codec, compress = COMPRESSORS[name]
    stream = compress(content)
    assert decompressed(codec, stream, limit=len(content)) == content
    for limit in (len(content) - 1, 0):
        with pytest.raises(RefusedError) as caught:
            decompressed(codec, stream, limit=limit)
        assert caught.value.requirements == ("SEG-COD-016",)


@pytest.mark.req("SEG-COD-016")
@pytest.mark.parametrize("codec", STREAMS)
def test_the_limit_holds_for_all_members_and_frames_together(codec: int) -> None:
    stream = STREAMS[codec] * (1 if codec == LZ4 else 3)
    size = len(RECORDS) * (1 if codec == LZ4 else 3)
    assert len(decompressed(codec, stream, limit=size)) == size
    with pytest.raises(RefusedError):
        decompressed(codec, stream, limit=size - 1)


@pytest.mark.req("SEG-COD-016")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_memory(name: str) -> None:
    limit = 64 * MEBIBYTE
    result = run_apart("tests/helpers/bombs.py", name, str(limit))
    assert (result["outcome"], result["requirement"]) == ("RefusedError", "SEG-COD-016")
    assert result["growth"] <= 96 * MEBIBYTE


def run_apart(*command: str) -> dict[str, Any]:
    run = subprocess.run(
        [sys.executable, "-P", *command], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=120
    )
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


@pytest.mark.req("SEG-COD-016")
def test_damage_within_the_limit_is_not_taken_for_size() -> None:
    frame = zstd_header(0, b"\x58") + zstd_block(1, 2**17, b"a", last=False) + zstd_block(2, 4, b"\xff" * 4)
    with pytest.raises(CorruptRecordError):
        decompressed(ZSTD, frame, limit=2**17)


CLAIMS = """
import resource, json
from seglog_format.codec.compression import decompress
from seglog_format.errors import CorruptRecordError, Location
import zstandard
def attempt(codec, text):
    try:
        return len(decompress(codec, bytes.fromhex(text), magic=2, at=Location()))
    except CorruptRecordError as error:
        return error.requirements[0]
attempt(4, "28b52ffd0058010000"), attempt(1, "")
pages = int(open("/proc/self/statm").read().split()[0])
cap = pages * resource.getpagesize() + 16 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
print(json.dumps([
    attempt(4, "28b52ffd00880100006161616161"[:18]),
    attempt(4, "28b52ffd0088" + "23000061"),
    attempt(4, "28b52ffde0ffffffffffffff7f" + "23000061"),
    attempt(2, "ffffffff0f" + "00" * 200),
    attempt(2, "82534e41505059000000000100000001" + "00000008" + "ffffffff0f000000"),
    attempt(2, "82534e41505059000000000100000001" + "7fffffff" + "ffffffff0f000000"),
    attempt(3, "04224d18607073" + "ffffff7f" + "00" * 100),
]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_claims_of_small_streams_cost_no_memory() -> None:
    """Windows, content sizes and block lengths of up to 2^63 bytes, with 16 MiB of address space left."""
    run = subprocess.run(
        [sys.executable, "-P", "-c", CLAIMS], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
    )
    assert run.stderr == ""
    corrupt_blocks = ["SEG-COD-014", "SEG-COD-004", "SEG-COD-003", "SEG-COD-003", "SEG-COD-009"]
    assert json.loads(run.stdout) == [0, 4, *corrupt_blocks]


# What libraries raise


@pytest.mark.parametrize("problem", [ValueError, OverflowError, SystemError, RuntimeError, BufferError])
def test_errors_of_libraries_are_errors_of_the_format(
    problem: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    inflater = SimpleNamespace(eof=False, decompress=fail)
    raw = SimpleNamespace(decompress_raw=fail, decompress_raw_len=lambda _: 1)
    monkeypatch.setattr(f"{PACKAGE}.snappy.cramjam", SimpleNamespace(snappy=raw))
    monkeypatch.setattr(f"{PACKAGE}.lz4.lz4.block.decompress", fail)
    monkeypatch.setattr(f"{PACKAGE}.zstd._pieces", fail)
    monkeypatch.setattr(f"{PACKAGE}.gzip.zlib", SimpleNamespace(decompressobj=lambda _: inflater))
    compressed_block = LZ4_HEADER + int_le(2) + b"\x10a" + END_MARK
    assert refusal(GZIP, STREAMS[GZIP]) == "SEG-COD-002 gzip.data 0"
    assert refusal(SNAPPY, snappy_raw(b"a")) == "SEG-COD-004 snappy.block 0"
    assert refusal(LZ4, compressed_block) == "SEG-COD-009 lz4.block 11"
    assert refusal(ZSTD, STREAMS[ZSTD]) == "SEG-COD-014 zstd 0"


def test_too_little_memory_says_nothing_about_the_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(f"{PACKAGE}.zstd._pieces", fail)
    with pytest.raises(RefusedError) as caught:
        decompressed(ZSTD, STREAMS[ZSTD])
    assert caught.value.requirements == ("SEG-COD-016",)


# Declarations


def test_layout_of_the_declared_headers() -> None:
    def rows(declaration: Struct) -> list[tuple[str, int | None, int | None, str]]:
        return [(row.name, row.offset, row.size, row.type) for row in layout(declaration) if row.doc]

    assert rows(schema.XerialHeader) == [
        ("magic", 0, 8, "bytes"),
        ("version", 8, 4, "int32"),
        ("compatible_version", 12, 4, "int32"),
    ]
    assert rows(schema.Lz4FrameHeader) == [
        ("magic", 0, 4, "uint32"),
        ("flags", 4, 1, "uint8"),
        ("block_descriptor", 5, 1, "uint8"),
        ("content_size", 6, None, "uint64"),
        ("header_checksum", None, 1, "uint8"),
    ]
    names = " ".join(name for name, *_ in rows(schema.ZstdFrameHeader))
    assert names == "magic descriptor window dictionary_id content_size"


# Directories that brokers wrote


COMPRESSED_CASES = [name for name in bundled_cases() if "codec" in name or "format" in name]


@each_of("name", COMPRESSED_CASES)
def test_batches_of_broker_directories(name: str) -> None:
    """Every compressed batch of every magic holds the records that Kafka reads in it."""
    lines = authentic_expected(name)
    batches = [
        line for line in lines if line["type"] == "batch" and line["codec"] != "none" and not line.get("invalid")
    ]
    records = iter([line for line in lines if line["type"] == "record"])
    wanted: dict[tuple[str, int], list[Any]] = {}
    for line in records:
        wanted.setdefault((line["file"], line["position"]), []).append((line["offset"], line["key"], line["value"]))
    for batch in islice(batches, 400):
        data = (authentic(name) / batch["file"]).read_bytes()[batch["position"] :][: batch["sizeInBytes"]]
        decoded = [(one.offset, as_line(one.key), as_line(one.value)) for one in decode_batch(data).records]
        assert decoded == wanted.get((batch["file"], batch["position"]), [])


def as_line(data: bytes | None) -> object:
    if data is None:
        return None
    if len(data) > 256:
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return base64.b64encode(data).decode()
