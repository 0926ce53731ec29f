"""Random numbers and bytes of version 2 of recipes: the same on every platform, and many at a time.

Numbers are output of SHAKE-128. Bytes are the exclusive or of two tables, each from a position that is drawn for every
piece: that is faster than a generator of random numbers, and no compressor finds the repetition.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seglog_format.engine.choice import is_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seglog_format.storage.byte_source import Buffer

NUMBER_BITS: Final = 32
NUMBER_SIZE: Final = 4
FRACTION: Final = (1 << NUMBER_BITS) - 1
TABLE_SIZE: Final = 1 << 20
"""Number of positions in a table from which a piece can begin."""
PIECE_SIZE: Final = 1 << 16
TEXT_SIZE: Final = 1 << 16
TEXT_PIECE_SIZE: Final = 256
WORDS: Final = (b"order", b"payment", b"sensor", b"kaeufer", b"log", b"a", b"of", b"segment", b"offset", b"0815")
"""Words of generated texts: ASCII, so a text can be cut at every byte."""


def threshold(probability: float) -> int:
    """Return the number that a drawn number is below with a probability."""
    return int(probability * (1 << NUMBER_BITS))


class Draws:
    """The random numbers and bytes for one purpose; each call draws new ones.

    Args:
        seed: any number.
        purpose: use of the numbers; each purpose has its own sequence.
    """

    def __init__(self, seed: int, *purpose: str | int) -> None:
        self._key = "/".join(map(str, (seed, *purpose))).encode()
        self._count = 0

    def numbers(self, count: int) -> array[int]:
        """Draw numbers of 32 bits."""
        self._count += 1
        digest = hashlib.shake_128(b"%d/%b" % (self._count, self._key)).digest(NUMBER_SIZE * count)
        found = array("I", digest)
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def within(self, count: int, bounds: Sequence[int]) -> list[int]:
        """Draw numbers from the first to the last of some bounds, both included.

        Each part between two neighbouring bounds has the same probability, and so has each number in a part.
        """
        least, most = bounds[0], bounds[-1]
        if least == most:
            return [least] * count
        if len(bounds) == 2:  # noqa: PLR2004 - one part
            span = most - least + 1
            return [least + (number * span >> NUMBER_BITS) for number in self.numbers(count)]
        parts = [(low, high - low + 1) for low, high in pairwise(bounds)]
        scaled = [number * len(parts) for number in self.numbers(count)]
        chosen = [(parts[number >> NUMBER_BITS], number & FRACTION) for number in scaled]
        return [low + (fraction * span >> NUMBER_BITS) for (low, span), fraction in chosen]

    def data(self, size: int) -> bytes:
        """Draw random bytes."""
        starts = iter(self.within(2 * -(-size // PIECE_SIZE), (0, TABLE_SIZE - 1)))
        tables, mix = (_table(0), _table(1)), _mixer()
        pieces = (
            mix(tables[0][a : a + PIECE_SIZE], tables[1][b : b + PIECE_SIZE])
            for a, b in zip(starts, starts, strict=True)
        )
        return b"".join(pieces)[:size]

    def text(self, size: int) -> bytes:
        """Draw words."""
        words = _text()
        starts = self.within(-(-size // TEXT_PIECE_SIZE), (0, TEXT_SIZE - 1))
        return b"".join([words[start : start + TEXT_PIECE_SIZE] for start in starts])[:size]


def _plain_mix(first: memoryview, second: memoryview) -> bytes:
    mixed = int.from_bytes(first, "little") ^ int.from_bytes(second, "little")
    return mixed.to_bytes(len(first), "little")


@cache
def _mixer() -> Callable[[memoryview, memoryview], Buffer]:
    """Return the function that computes the exclusive or of two pieces."""
    if not is_installed():
        return _plain_mix
    import numpy as np  # noqa: PLC0415 - an extra

    def mix(first: memoryview, second: memoryview) -> memoryview:
        return np.bitwise_xor(np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)).data

    return mix


@cache
def _table(number: int) -> memoryview:
    return memoryview(hashlib.shake_128(b"table %d" % number).digest(TABLE_SIZE + PIECE_SIZE))


@cache
def _text() -> bytes:
    words = [WORDS[number % len(WORDS)] for number in hashlib.shake_128(b"text").digest(TEXT_SIZE // 2)]
    return b" ".join(words)[: TEXT_SIZE + TEXT_PIECE_SIZE]
