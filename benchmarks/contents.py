"""A checksum of the contents of a log, cheap enough to be part of the work and the same in every language.

For each record, in order, ``h = h * M + word``, everything modulo 2**64, where ``word`` is the sum

    offset + (timestamp << 17) + ((key size + 1) << 40) + ((value size + 1) << 29) + (edges << 31) + (headers << 57)

The size of a null is -1. ``edges`` has the first and last byte of the key in bits 0 and 8, and those of the value in
bits 16 and 24. For batches the word is ``last offset + (size in bytes << 40)`` or the CRC, depending on the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

MULTIPLIER: Final = 0x9E3779B97F4A7C15
MODULUS: Final = 1 << 64
CHUNK: Final = 1 << 16

POWERS: Final = np.multiply.accumulate(
    np.concatenate([np.ones(1, np.uint64), np.full(CHUNK, MULTIPLIER, np.uint64)])  # overflow is intended
)[::-1]
"""Powers of the multiplier, the highest first; the last is 1."""


@dataclass(frozen=True, slots=True)
class Part:
    """The checksum of a run of records; parts that were read separately can be joined.

    Attributes:
        number: the checksum, modulo 2**64.
        count: number of records.
    """

    number: int = 0
    count: int = 0

    def then(self, words: NDArray[np.uint64]) -> Part:
        """Return this part with more records appended."""
        joined = self
        for start in range(0, len(words), CHUNK):
            some = words[start : start + CHUNK]
            number = int((some * POWERS[CHUNK + 1 - len(some) :]).sum())
            joined = joined.joined(Part(number, len(some)))
        return joined

    def joined(self, later: Part) -> Part:
        """Return this part followed by one that was read separately."""
        number = self.number * pow(MULTIPLIER, later.count, MODULUS) + later.number
        return Part(number % MODULUS, self.count + later.count)


def joined(parts: Iterable[Part]) -> Part:
    """Join parts that follow each other."""
    total = Part()
    for part in parts:
        total = total.joined(part)
    return total


@dataclass(frozen=True, slots=True)
class Columns:
    """The values that enter the checksum, one element per record; see the module for `edges`."""

    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    key_sizes: NDArray[np.int64]
    value_sizes: NDArray[np.int64]
    edges: NDArray[np.int64]
    header_counts: NDArray[np.int64]

    def words(self) -> NDArray[np.uint64]:
        """Return one word per record."""
        found: NDArray[np.int64] = self.offsets + (self.timestamps << 17)
        found += (self.key_sizes + 1) << 40
        found += (self.value_sizes + 1) << 29
        found += (self.edges << 31) + (self.header_counts << 57)
        return found.view(np.uint64)


def batch_words(last_offsets: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return one word per batch."""
    words: NDArray[np.int64] = last_offsets + (sizes << 40)
    return words.view(np.uint64)


def edges_of(key: bytes | None, value: bytes | None) -> int:
    """Return the bytes at the ends of a key and a value."""
    found = key[0] | key[-1] << 8 if key else 0
    return found | value[0] << 16 | value[-1] << 24 if value else found
