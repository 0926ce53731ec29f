"""Fields that the format leaves to an encoder: epoch and first sequence of a batch without a producer id.

Kafka's validator checks neither (SEG-BAT-020 asks for an epoch of -1, as a SHOULD; a separate case tests that).
Producers write a sequence of -1 or 0.
"""

from __future__ import annotations

import struct
from typing import Final

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError

MAGIC: Final = 2
CRC: Final = slice(17, 21)
COVERED: Final = 21
"""Position from which the checksum covers a batch."""
PRODUCER_ID: Final = slice(43, 51)
FREE: Final = slice(51, 57)
"""Positions of producer epoch and base sequence."""
NO_PRODUCER: Final = struct.pack(">q", -1)
USUAL: Final = struct.pack(">hi", -1, -1)


def with_usual_values(data: str) -> str:
    """Return encoded batches in hex with -1 in the free fields, and corrected checksums where they were correct.

    Args:
        data: batches in hex; data that cannot be walked is returned unchanged.
    """
    try:
        log = bytes.fromhex(data)
        pieces = [_usual(bytes(frame.data)) for frame in walk(memoryview(log))]
    except (FormatError, ValueError):
        return data
    usual = b"".join(pieces)
    return (usual + log[len(usual) :]).hex()


def _usual(entry: bytes) -> bytes:
    if entry[16] != MAGIC or entry[PRODUCER_ID] != NO_PRODUCER:
        return entry
    changed = bytearray(entry)
    changed[FREE] = USUAL
    if struct.pack(">I", crc32c(entry[COVERED:])) == entry[CRC]:
        changed[CRC] = struct.pack(">I", crc32c(changed[COVERED:]))
    return bytes(changed)
