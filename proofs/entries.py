"""Changes of encoded entries, made without the package: it does not judge its own changes."""

from __future__ import annotations

import struct
import zlib
from typing import Final

import google_crc32c

MAGIC_POSITION: Final = 16
MAGIC_2: Final = 2
OFFSET: Final = struct.Struct(">q")
LEADER_EPOCH: Final = struct.Struct(">i")
LEADER_EPOCH_POSITION: Final = 12
CHECKSUM: Final = struct.Struct(">I")


def sealed(entry: bytes | bytearray) -> bytes:
    """Return a whole entry with a checksum that agrees with its bytes."""
    changed = bytearray(entry)
    if changed[MAGIC_POSITION] == MAGIC_2:
        CHECKSUM.pack_into(changed, 17, google_crc32c.value(bytes(changed[21:])))
    else:
        CHECKSUM.pack_into(changed, 12, zlib.crc32(changed[16:]))
    return bytes(changed)


def is_sealed(entry: bytes | bytearray | memoryview) -> bool:
    """Return whether the checksum of a whole entry agrees with its bytes."""
    return sealed(bytearray(entry)) == bytes(entry)


def with_offset(entry: bytes | memoryview, offset: int, leader_epoch: int | None = None) -> bytes:
    """Return an entry at another offset, and a batch with another leader epoch: no checksum covers these."""
    changed = bytearray(entry)
    OFFSET.pack_into(changed, 0, offset)
    if leader_epoch is not None and changed[MAGIC_POSITION] == MAGIC_2:
        LEADER_EPOCH.pack_into(changed, LEADER_EPOCH_POSITION, leader_epoch)
    return bytes(changed)
