"""The two checksums, against the reference's, which are made of the polynomials, published values and Kafka's bytes."""

from __future__ import annotations

import importlib
import mmap
import struct
import sys
from typing import TYPE_CHECKING

import google_crc32c
import pytest
from helpers.support import vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.codec import checksum
from seglog_format.codec.checksum import COPY_SIZE, CRC32_POLYNOMIAL, CRC32C_POLYNOMIAL, crc32, crc32c
from seglog_format.codec.reference import crc32 as by_polynomial_32
from seglog_format.codec.reference import crc32c as by_polynomial_32c

if TYPE_CHECKING:
    from pathlib import Path

ALL_BITS = 0xFFFFFFFF


def bit_by_bit(data: bytes, polynomial: int) -> int:
    """Return what a checksum is: the remainder of a division, one bit after the other, lowest bit first."""
    reflected = int(f"{polynomial:032b}"[::-1], 2)
    remainder = ALL_BITS
    for byte in data:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (reflected if remainder & 1 else 0)
    return remainder ^ ALL_BITS


@pytest.mark.parametrize(
    ("data", "expected", "expected_c"),
    [
        (b"", 0, 0),
        (b"123456789", 0xCBF43926, 0xE3069283),
        (bytes(32), 0x190A55AD, 0x8A9136AA),
        (b"\xff" * 32, 0xFF6CAB0B, 0x62A8AB43),
        (bytes(range(32)), 0x91267E8A, 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x9AB0EF72, 0x113FDB5C),
    ],
)
def test_published_values(data: bytes, expected: int, expected_c: int) -> None:
    assert (crc32(data), crc32c(data)) == (expected, expected_c)


@each_of("size", [0, 1, 3, 7, 8, 15, 16, 17, 63, 64, 65, 255, 1023, 4096, 65537])
def test_every_path_of_the_fast_libraries_follows_the_polynomial(size: int) -> None:
    data = bytes(number * 37 & 0xFF for number in range(size + 3))[3:]
    assert crc32(data) == by_polynomial_32(data)
    assert crc32c(data) == by_polynomial_32c(data)


@given(st.binary(max_size=200))
def test_libraries_and_bits_agree(data: bytes) -> None:
    assert crc32(data) == by_polynomial_32(data) == bit_by_bit(data, CRC32_POLYNOMIAL)
    assert crc32c(data) == by_polynomial_32c(data) == bit_by_bit(data, CRC32C_POLYNOMIAL)


@given(st.binary(max_size=200), st.integers(0, 200))
def test_crc32_continues_where_another_stopped(data: bytes, cut: int) -> None:
    assert crc32(data[cut:], crc32(data[:cut])) == crc32(data)
    assert by_polynomial_32(data[cut:], crc32(data[:cut])) == crc32(data)
    assert by_polynomial_32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda data: memoryview(bytearray(data))])
@pytest.mark.parametrize("size", [0, 100, COPY_SIZE, COPY_SIZE + 1, 3 * COPY_SIZE - 1])
def test_any_buffer_will_do(kind: type, size: int) -> None:
    data = (b"segment" * (size // 7 + 1))[:size]
    assert crc32(kind(data)) == crc32(data)
    assert crc32c(kind(data)) == crc32c(data)


def test_a_slice_of_a_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(vector("V-06"))
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as view,
        view[21:] as checked,
    ):
        assert crc32c(checked) == 0x2A41A989
        assert crc32(checked) == by_polynomial_32(bytes(checked))


@pytest.mark.parametrize("name", ["V-06", "V-08", "V-09", "V-10", "V-11", "V-12", "V-13", "V-15", "V-20", "V-22"])
def test_batches_that_kafka_wrote(name: str) -> None:
    data = vector(name)
    assert struct.unpack_from(">I", data, 17) == (crc32c(data[21:]),)


@pytest.mark.parametrize("name", ["V-03", "V-04", "V-05"])
def test_wrappers_that_kafka_wrote(name: str) -> None:
    data = vector(name)
    assert struct.unpack_from(">I", data, 12) == (crc32(data[16:]),)


def test_producer_snapshot_that_kafka_wrote() -> None:
    data = vector("V-25")
    assert struct.unpack_from(">I", data, 2) == (crc32c(data[6:]),)


def test_processors_without_a_wheel_use_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "isal.isal_zlib", None)
        fallback = importlib.reload(checksum)
        assert fallback.crc32(b"123456789") == 0xCBF43926
    importlib.reload(checksum)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="wheels are for CPython")
def test_this_installation_has_the_fast_library() -> None:
    """Its fallback in Python is right, but some thousand times slower."""
    assert google_crc32c.implementation == "c"
