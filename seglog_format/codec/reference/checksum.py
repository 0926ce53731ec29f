"""The two checksums of the format, computed from their polynomials alone (SEG-MSG-004, SEG-BAT-003, SEG-PSN-002).

Both shift the lowest bit first, start with all bits set, and invert the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from crcmod import mkCrcFun

from seglog_format.codec.checksum import CRC32_POLYNOMIAL, CRC32C_POLYNOMIAL
from seglog_format.model import RecordBatchHeader
from seglog_format.schema.fields import position_of
from seglog_format.schema.message_set import MessageV0Header
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.model import Frame
    from seglog_format.storage.byte_source import Buffer

HIGHEST_TERM: Final = 1 << 32
"""The term x^32, which the usual way to write a polynomial of 32 bits leaves out."""
ALL_BITS: Final = 0xFFFFFFFF


def _checksum(polynomial: int) -> Callable[[bytes, int], int]:
    made: Callable[[bytes, int], int] = mkCrcFun(HIGHEST_TERM | polynomial, initCrc=0, rev=True, xorOut=ALL_BITS)
    return made


_CRC32: Final = _checksum(CRC32_POLYNOMIAL)
_CRC32C: Final = _checksum(CRC32C_POLYNOMIAL)


def crc32(data: Buffer, start: int = 0) -> int:
    """Return the CRC-32 of some bytes, as an unsigned number.

    Args:
        data: bytes.
        start: checksum of the preceding bytes, if the data comes in pieces.
    """
    return _CRC32(bytes(data), start)


def crc32c(data: Buffer, start: int = 0) -> int:
    """Return the CRC-32C of some bytes, as an unsigned number.

    Args:
        data: bytes.
        start: checksum of the preceding bytes, if the data comes in pieces.
    """
    return _CRC32C(bytes(data), start)


def computed_crc(frame: Frame) -> int:
    """Compute the checksum of an entry: CRC-32C in magic 2, CRC-32 below (SEG-BAT-003, SEG-MSG-004)."""
    if isinstance(frame.header, RecordBatchHeader):
        start, extend = position_of(RecordBatchHeaderSchema, "attributes"), crc32c
    else:
        start, extend = position_of(MessageV0Header, "magic"), crc32
    checksum = 0
    for piece in frame.pieces(start):
        checksum = extend(piece, checksum)
    return checksum
