"""Numbers from a seed: the same ones on every platform and under every Python.

Only `getrandbits` of `random.Random` is used, whose sequence is fixed; how a number of a range comes out of its bits is
written here, because Python's own way has changed before.
"""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

FRACTION_BITS: Final = 53
"""As many as a float keeps."""


class Chance:
    """A source of numbers.

    Args:
        seed: any number.
        purpose: what the numbers are for; each purpose has its own, so that more of one leave the others alone.
    """

    def __init__(self, seed: int, *purpose: str | int) -> None:
        text = "/".join([str(seed), *(str(part) for part in purpose)])
        digest = hashlib.sha256(text.encode()).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - to be repeated, not to be secret

    def number(self, least: int, most: int) -> int:
        """A number from `least` to `most`, both included, each as likely as any other."""
        span = most - least + 1
        bits = (span - 1).bit_length()
        while True:
            value = self._random.getrandbits(bits) if bits else 0
            if value < span:
                return least + value

    def fraction(self) -> float:
        """A number from 0 up to, not including, 1."""
        return self._random.getrandbits(FRACTION_BITS) / (1 << FRACTION_BITS)

    def happens(self, probability: float) -> bool:
        """True about so many times out of one."""
        return self.fraction() < probability

    def one_of(self, values: Sequence[T]) -> T:
        """One of some values."""
        return values[self.number(0, len(values) - 1)]

    def data(self, size: int) -> bytes:
        """So many bytes."""
        return self._random.getrandbits(8 * size).to_bytes(size, "big") if size else b""

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in another order."""
        left = list(values)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(len(left))]
