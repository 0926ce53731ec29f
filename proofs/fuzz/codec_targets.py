"""Targets of fuzzing and bounds checks for codecs: the engine must decompress the same bytes as the libraries."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Final

import numpy as np

from proofs.fuzz.judging import ARENA, LIMIT, LOG, SMALL_LIMIT, DifferenceError, compare_results
from seglog_format import CompressionCodec
from seglog_format.codec.compression import decompress
from seglog_format.columnar import plan as names
from seglog_format.columnar.chunks import Decoders, decompress_ahead, no_chunks
from seglog_format.columnar.compiled import checksum_path
from seglog_format.columnar.memory import SLACK
from seglog_format.errors import FormatError, Location

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes

ROOM: Final = 2**16
"""Bytes of a decompressed block in the targets of a codec."""
CANARY: Final = 0xA5


DECODERS: Final = Decoders()


# Targets that decompress

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
FRAME_START: Final = bytes.fromhex("04224d18604082")
LZ4_SIZE: Final = 65536


def batch_around(stored: bytes, codec: CompressionCodec) -> bytes:
    """Return an entry of magic 2 whose records section is these bytes; its checksum is not verified here."""
    return HEADER.pack(0, 49 + len(stored), 0, 2, 0, codec, 0, 0, 0, -1, -1, -1, 1) + stored


def message_around(stored: bytes, codec: CompressionCodec) -> bytes:
    """Return a wrapper of magic 0 with these bytes: in it, the header checksum of an lz4 frame is not verified."""
    return struct.pack(">qiIbbii", 0, 14 + len(stored), 0, 0, codec, -1, len(stored)) + stored


def decompress_first(log: Bytes, arena: Bytes, *, used: int, limit: int) -> list[int] | None:
    """Decompress the first entry of a log into the arena, from `used` on, as the kernels for checks do.

    Returns:
        Position of the entry, start and end of its content in the arena; None if the fallback decoder has to read it.
    """
    plan, state = np.zeros(names.PLAN_SIZE, np.int64), np.zeros(names.STATE_SIZE, np.int64)
    chunks = no_chunks()
    plan[names.LIMIT], plan[names.MAX_ROWS], state[names.ARENA_USED] = limit, 1, used
    plan[names.CHECKSUM_PATH], plan[names.DECODERS :] = checksum_path(), DECODERS.slots
    decompress_ahead(log, arena, plan, state, chunks)
    found: list[int] = chunks[: names.CHUNK_FIELDS].tolist()
    return found if state[names.CHUNKS] else None


def decompressed(
    stored: bytes, codec: CompressionCodec, *, magic: int = 2, used: int = 0, room: int = ROOM, limit: int = 2**20
) -> bytes | None:
    """Return the bytes that the kernel decompresses, or None; in the arena, nothing else but its slack may change.

    Args:
        stored: compressed bytes, to the last one before memory that may not be read.
        codec: their codec.
        magic: magic of the entry, 0 or 2.
        used: number of used bytes of the arena.
        room: number of bytes after them.
        limit: bytes that an entry may decompress to.
    """
    log = LOG.holding(batch_around(stored, codec) if magic else message_around(stored, codec))
    arena = ARENA.last(used + room + SLACK)
    arena[:used], arena[used:] = CANARY, 0
    data = np.frombuffer(log, np.uint8)
    data.flags.writeable = False
    found = decompress_first(data, arena, used=used, limit=limit)
    if (arena[:used] != CANARY).any():
        msg = "bytes before the content were overwritten"
        raise DifferenceError(msg)
    if found is None:
        return None
    position, start, end = found
    compare_results("section", (position, start), (0, used))
    return bytes(arena[start:end])


def by_reference(stored: bytes, codec: CompressionCodec, magic: int = 2) -> bytes | None:
    """Return the bytes that the library decompresses; None if it refuses."""
    try:
        return decompress(codec, stored, magic=magic, at=Location("p", 0), limit=2**20)
    except FormatError:
        return None


def compare_content(
    stored: bytes, codec: CompressionCodec, option: int, *, magic: int = 2, is_plain: bool = False
) -> str:
    """Compare content with that of the library; with ``is_plain``, the engine must not leave any to the fallback."""
    wanted = by_reference(stored, codec, magic)
    used = (option & 3) * 21
    found = decompressed(stored, codec, magic=magic, used=used)
    if found is not None or (is_plain and wanted is not None and len(wanted) <= ROOM):
        compare_results(f"content of {codec.label}", found, wanted)
    if found is not None:
        for room in {len(found), max(len(found) - 1, 0), len(found) // 2, min(len(found) + 5, ROOM)}:
            again = decompressed(stored, codec, magic=magic, used=used, room=room)
            compare_results(f"content of {codec.label} in {room} bytes", again, found if room >= len(found) else None)
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def lz4(data: bytes, option: int) -> str:
    """Decompress blocks or whole frames. Options: two bits for the place; a whole frame; of magic 0."""
    if option & 4:
        return compare_content(data, CompressionCodec.LZ4, option, magic=0 if option & 8 else 2)
    data = data[:LZ4_SIZE]
    frame = FRAME_START + struct.pack("<I", len(data)) + data + bytes(4) if data else FRAME_START + bytes(4)
    return compare_content(frame, CompressionCodec.LZ4, option)


def snappy(data: bytes, option: int) -> str:
    """Decompress a raw block, or xerial blocks, as the first bytes say. Options: two bits for the place."""
    return compare_content(data, CompressionCodec.SNAPPY, option, is_plain=True)


def libraries(data: bytes, option: int) -> str:
    """Decompress by library functions: gzip or zstd, by the first bit; with a small limit, by the second bit."""
    codec = CompressionCodec.GZIP if option & 1 else CompressionCodec.ZSTD
    limit = SMALL_LIMIT if option & 2 else LIMIT
    found = decompressed(data, codec, room=LIMIT, limit=limit)
    try:
        wanted = decompress(codec, data, magic=2, at=Location("p", 0), limit=limit)
    except FormatError:
        wanted = None
    if found is not None:
        compare_results(f"content of {codec.label}", found, wanted)
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]
