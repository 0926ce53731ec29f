"""Random numbers from a seed: the same numbers on every platform and with every Python version.

Only `getrandbits` of `random.Random` is used, whose sequence is fixed. This module converts its bits to numbers in a
range, because Python's own conversion has changed before.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

FRACTION_BITS: Final = 53
"""Bits of precision of a float."""


class SeededRandom:
    """A generator of random numbers with a seed.

    Args:
        seed: any number.
        purpose: use of the numbers; each purpose has its own sequence, so more numbers for one do not change those
            for another.
    """

    def __init__(self, seed: int, *purpose: str | int) -> None:
        text = "/".join([str(seed), *(str(part) for part in purpose)])
        digest = hashlib.sha256(text.encode()).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - the numbers must be repeatable, not secret

    def number(self, least: int, most: int) -> int:
        """Draw a number from `least` to `most`, both included, each with the same probability."""
        span = most - least + 1
        bits = (span - 1).bit_length()
        while True:
            value = self._random.getrandbits(bits) if bits else 0
            if value < span:
                return least + value

    def fraction(self) -> float:
        """Draw a number from 0 up to, not including, 1."""
        return self._random.getrandbits(FRACTION_BITS) / (1 << FRACTION_BITS)

    def happens(self, probability: float) -> bool:
        """Draw True with a probability from 0 to 1."""
        return self.fraction() < probability

    def one_of(self, values: Sequence[T]) -> T:
        """Draw one of some values."""
        return values[self.number(0, len(values) - 1)]

    def data(self, size: int) -> bytes:
        """Draw random bytes."""
        return self._random.getrandbits(8 * size).to_bytes(size, "big") if size else b""

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in random order."""
        left = list(values)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(len(left))]
