"""Blocks of lz4 and snappy made element by element: valid blocks, and blocks that no compressor makes."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOISE: Final = random.Random(5).randbytes(2**16)
"""Source of literals, which are taken from successive positions and therefore differ."""
FRAME_HEADER: Final = bytes.fromhex("04224d18604082")
MIN_MATCH: Final = 4
MORE: Final = 15

Step = tuple[int, int, int]
"""An lz4 sequence: size of the literals, size of the match after them, and its distance."""
Element = tuple[int, int, int]
"""A snappy element: kind, size, and the distance of a copy, or the bytes of a literal's size (0: in the tag)."""
LITERAL, SHORT, MEDIUM, FAR = range(4)
LITERAL_SIZES: Final = (
    0,
    1,
    2,
    7,
    8,
    13,
    14,
    15,
    16,
    17,
    31,
    32,
    33,
    47,
    48,
    59,
    60,
    61,
    63,
    64,
    65,
    80,
    269,
    270,
    271,
)
MATCH_SIZES: Final = (*range(4, 81), 272, 273, 274)
DISTANCES: Final = (*range(1, 71), 255, 256, 300)


def lz4_block(sequences: Iterable[Step], last: int) -> bytes:
    """Return a block of sequences with a match, and a last one without; distances may be invalid."""
    made, position = bytearray(), 0
    for literals, match, distance in sequences:
        made.append(min(literals, MORE) << 4 | min(match - MIN_MATCH, MORE))
        made += longer(literals) + NOISE[position : position + literals] + struct.pack("<H", distance)
        made += longer(match - MIN_MATCH)
        position += literals
    return bytes(made) + bytes([min(last, MORE) << 4]) + longer(last) + NOISE[position : position + last]


def longer(size: int) -> bytes:
    """Return the bytes of a size after a token whose half is full."""
    return bytes([255] * ((size - MORE) // 255) + [(size - MORE) % 255]) if size >= MORE else b""


def lz4_frame(*blocks: bytes) -> bytes:
    """Return a frame of such blocks."""
    return FRAME_HEADER + b"".join(struct.pack("<I", len(block)) + block for block in blocks if block) + bytes(4)


def snappy_block(elements: Sequence[Element], surplus: int = 0) -> bytes:
    """Return a raw block. ``surplus``: excess of its stated size over its real size."""
    claimed = max(sum(size for _, size, _ in elements) + surplus, 0)
    made, position = bytearray(), 0
    while claimed >= 128:  # noqa: PLR2004 - the format
        made.append(claimed & 127 | 128)
        claimed >>= 7
    made.append(claimed)
    for kind, size, distance in elements:
        if kind == LITERAL:
            made += literal(NOISE[position : position + size], distance)
            position += size
        elif kind == SHORT:
            made += bytes([distance >> 8 << 5 | size - MIN_MATCH << 2 | SHORT, distance & 255])
        else:
            made += bytes([size - 1 << 2 | kind]) + struct.pack("<H" if kind == MEDIUM else "<I", distance)
    return bytes(made)


def literal(data: bytes, width: int) -> bytes:
    """Return a literal whose size is in the tag, or in `width` bytes after it."""
    if len(data) <= 60 and not width:  # noqa: PLR2004 - the format
        return bytes([len(data) - 1 << 2]) + data
    width = max(width, 1 if len(data) <= 256 else 2)  # noqa: PLR2004
    return bytes([59 + width << 2]) + (len(data) - 1).to_bytes(width, "little") + data


def random_lz4(dice: random.Random) -> bytes:
    """Make a random block; about every second one is valid."""
    sequences, size = [], 0
    for _ in range(dice.choice((1, 1, 2, 3, 5, 12))):
        literals, match = dice.choice(LITERAL_SIZES), dice.choice(MATCH_SIZES)
        size += literals
        distance = dice.choice(DISTANCES)
        if dice.random() < 0.9:  # noqa: PLR2004
            distance = min(distance, max(size, 1))
        sequences.append((literals, match, distance))
        size += match
    return lz4_block(sequences, dice.choice((*range(21), 60, 64, 80)))


def random_snappy(dice: random.Random) -> bytes:
    """Make a random raw block; most are valid."""
    elements: list[Element] = [(LITERAL, dice.choice(LITERAL_SIZES[1:]), 0)]
    size = elements[0][1]
    for _ in range(dice.choice((1, 2, 3, 5, 12, 20))):
        kind = dice.choice((LITERAL, SHORT, SHORT, MEDIUM, MEDIUM, FAR))
        length = {LITERAL: dice.choice(LITERAL_SIZES[1:]), SHORT: dice.randrange(4, 12)}.get(
            kind, dice.randrange(1, 65)
        )
        distance = min(dice.choice(DISTANCES), size if dice.random() < 0.97 else 9999)  # noqa: PLR2004
        elements.append((kind, length, distance if kind else dice.choice((0, 0, 0, 1, 2, 3, 4))))
        size += length
    return snappy_block(elements, dice.choice((0, 0, 0, 0, 0, 0, 0, 1, -1, 20)))
