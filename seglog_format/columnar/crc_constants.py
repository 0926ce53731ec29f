"""Powers of x modulo the two polynomials of the format, for tables and carry-less products.

All numbers are reflected, as the checksums are: the highest power is the lowest bit.
"""

from __future__ import annotations

from typing import Final

import numpy as np

CRC32_REFLECTED: Final = 0xEDB88320
CRC32C_REFLECTED: Final = 0x82F63B78

BARRETT_POLYNOMIAL: Final = CRC32_REFLECTED << 1 | 1
"""CRC-32's polynomial with its 33rd bit."""
BARRETT_QUOTIENT: Final = 0x1F7011641
"""x^64 divided by that polynomial."""


def _product(a: int, b: int, polynomial: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        product ^= a if b >> bit & 1 else 0
        a = a >> 1 ^ (polynomial if a & 1 else 0)
    return product


def power(exponent: int, polynomial: int) -> int:
    """Return x to some power, modulo a polynomial."""
    result, square = 1 << 31, 1 << 30
    while exponent:
        result = _product(result, square, polynomial) if exponent & 1 else result
        square = _product(square, square, polynomial)
        exponent >>= 1
    return result


def multiplier(bits: int, polynomial: int) -> int:
    """Return the factor of a carry-less product that moves 64 bits ahead; reflection loses one bit."""
    return power(bits, polynomial) << 1


def tables(polynomial: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return, for each byte of eight, its remainder after the bytes that follow."""
    rows = np.zeros((8, 256), np.int64)
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (polynomial if rest & 1 else 0)
        rows[0, byte] = rest
    for distance in range(1, 8):
        before = rows[distance - 1]
        rows[distance] = before >> 8 ^ rows[0, before & 255]
    return rows
