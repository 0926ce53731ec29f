"""The two checksums of the format: CRC-32 in magic 0 and 1, CRC-32C in magic 2 and producer snapshots.

Both process the lowest bit of a byte first, start with all bits set, and invert the result; only the polynomials
differ. The tests compare them with a bit-by-bit implementation of each polynomial.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import google_crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.storage.byte_source import Buffer

CRC32_POLYNOMIAL: Final = 0x04C11DB7
CRC32C_POLYNOMIAL: Final = 0x1EDC6F41

COPY_SIZE: Final = 2**18
"""Number of bytes copied at a time, small enough for the processor's cache."""


def crc32(data: Buffer, start: int = 0) -> int:
    """Compute CRC-32 (polynomial 04c11db7) as an unsigned number, without copying (SEG-MSG-004).

    Args:
        data: bytes.
        start: checksum of the preceding bytes, if the data comes in pieces.
    """
    return int(_fast_crc32()(data, start))


@cache
def _fast_crc32() -> Callable[[Buffer, int], int]:
    """Return the fastest available function. It is imported at its first use, since old messages are rare."""
    try:
        from isal.isal_zlib import crc32 as fast  # noqa: PLC0415
    except ImportError:  # isal has no wheels for some processors
        from zlib import crc32 as fast  # noqa: PLC0415
    return fast


def crc32c(data: Buffer, start: int = 0) -> int:
    """Compute CRC-32C (polynomial 1edc6f41) as an unsigned number (SEG-BAT-003, SEG-PSN-001).

    The library reads `bytes` only; other buffers are copied in small pieces.

    Args:
        data: bytes.
        start: checksum of the preceding bytes, if the data comes in pieces.
    """
    if isinstance(data, bytes):
        return int(google_crc32c.extend(start, data))
    view = memoryview(data).cast("B")
    checksum = start
    for position in range(0, len(view), COPY_SIZE):
        checksum = int(google_crc32c.extend(checksum, bytes(view[position : position + COPY_SIZE])))
    return checksum
