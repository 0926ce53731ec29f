"""Checksums of the engine: every path against the libraries, whose numbers other tests hold against the polynomials."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING

import google_crc32c
import pytest

pytest.importorskip("pyarrow")

from seglog_format.columnar import compiled
from seglog_format.columnar.arrays import readable
from seglog_format.columnar.checksum import CRC32_REFLECTED, CRC32C_REFLECTED, checksum, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = random.Random(7).randbytes(12_000)  # noqa: S311 - not for secrets
STARTS = (0, 1, 7, 15, 16, 33)
SIZES = (*range(420), 511, 512, 513, 767, 768, 1023, 1024, 3071, 3072, 3073, 6144, 9999)


def path_of(name: str) -> int:
    path = compiled.PATHS[name]
    if not compiled.supports(path):
        pytest.skip(f"this processor has no {name} path")
    return path


@pytest.mark.parametrize("name", compiled.PATHS)
def test_every_path_computes_crc32c(name: str) -> None:
    path, array = path_of(name), readable(DATA)
    for start, size in runs():
        assert checksum(True, path, array, start, size) == google_crc32c.value(DATA[start : start + size])


@pytest.mark.parametrize("name", compiled.PATHS)
def test_every_path_computes_crc32(name: str) -> None:
    path, array = path_of(name), readable(DATA)
    for start, size in runs():
        assert checksum(False, path, array, start, size) == zlib.crc32(DATA[start : start + size])


def runs() -> Iterator[tuple[int, int]]:
    return ((start, size) for start in STARTS for size in SIZES)


def test_a_run_outside_of_the_bytes_is_refused() -> None:
    for start, size in ((-1, 5), (0, len(DATA) + 1), (5, -1)):
        assert checksum(True, compiled.PORTABLE, readable(DATA), start, size) == -1


def test_a_path_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(compiled.ENVIRONMENT, "portable")
    assert compiled.checksum_path() == compiled.PORTABLE
    monkeypatch.setenv(compiled.ENVIRONMENT, "narrow")
    assert compiled.checksum_path() <= compiled.NARROW


def test_what_the_processor_lacks_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "features", lambda: frozenset({"sse4.2", "pclmul"}))
    assert compiled.checksum_path() == compiled.NARROW
    monkeypatch.setattr(compiled, "features", frozenset[str])
    assert compiled.checksum_path() == compiled.PORTABLE


def test_the_wide_path_folds_with_the_right_constants() -> None:
    """Emulate the folding of 512-bit vectors, which few processors can run, lane by lane."""
    from seglog_format.columnar.checksum import multiplier

    for polynomial in (CRC32_REFLECTED, CRC32C_REFLECTED):
        data = DATA[:1024]
        register = 0xFFFFFFFF
        lanes = [int.from_bytes(data[at : at + 16], "little") for at in range(0, 256, 16)]
        lanes[0] ^= register
        for step in range(256, len(data), 256):
            lanes = [
                moved(lane, 256, polynomial, multiplier)
                ^ int.from_bytes(data[step + 16 * number : step + 16 * number + 16], "little")
                for number, lane in enumerate(lanes)
            ]
        whole = lanes[0]
        for lane in lanes[1:]:
            whole = moved(whole, 16, polynomial, multiplier) ^ lane
        assert table_crc(whole.to_bytes(16, "little"), 0, polynomial) == table_crc(data, register, polynomial)


def moved(lane: int, size: int, polynomial: int, multiplier: object) -> int:
    assert callable(multiplier)
    low, high = lane & (1 << 64) - 1, lane >> 64
    first = multiplier(8 * size + 32, polynomial)
    second = multiplier(8 * size - 32, polynomial)
    return carryless(low, first) ^ carryless(high, second)


def carryless(a: int, b: int) -> int:
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a, b = a << 1, b >> 1
    return product


def table_crc(data: bytes, register: int, polynomial: int) -> int:
    table = tables(polynomial)[0]
    for byte in data:
        register = register >> 8 ^ int(table[(register ^ byte) & 255])
    return register
