"""What stands in the slots of Python objects: handed over, or written anew where nobody else has it.

An integer that only a slot refers to is seen by nobody; it takes another number in a tenth of the time that it takes to
give it back and to make a new one. How the interpreter lays integers out is looked up before (`int_layout`).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper
from seglog_format.columnar.interpreter import NULL, let_go, new_bytes, new_int, shared
from seglog_format.columnar.memory import load_64, store_32, store_64

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

HEAD_SIZE: Final = object.__basicsize__
REFERENCES_AT: Final = 0
TYPE_AT: Final = 8
"""Of any object: how many refer to it, and its type."""

TAG_AT: Final = 16
"""Of an integer: how many digits it has, and its sign."""
DIGITS_AT: Final = 24
DIGIT_BITS: Final = 30
DIGIT: Final = (1 << DIGIT_BITS) - 1
SHORT_SIZE, LONG_SIZE = DIGITS_AT + 4, DIGITS_AT + 8
LARGEST_SHARED: Final = 256
"""Integers up to this one are there once for everybody."""

NOTHING, INT, SHORT_TAG, LONG_TAG = range(4)
"""Of what is known of the interpreter: None, the type of integers, and the tags of those of one and of two digits."""


class UnknownLayoutError(Exception):
    """The interpreter lays its objects out in a way that is not known here."""


def int_layout() -> tuple[int, int]:
    """The tags of positive integers of one digit and of two.

    Raises:
        UnknownLayoutError: this interpreter keeps its integers in another way.
    """
    tags = []
    for sample, digits in ((5 << 25, 5 << 25), (7 << DIGIT_BITS | 9, 7 << 32 | 9)):
        words = (ctypes.c_int64 * (LONG_SIZE // 8)).from_address(id(sample))
        shown = words[DIGITS_AT // 8] if sample > DIGIT else words[DIGITS_AT // 8] & 0xFFFFFFFF
        if words[TYPE_AT // 8] != id(int) or shown != digits:
            raise UnknownLayoutError
        tags.append(words[TAG_AT // 8])
    return tags[0], tags[1]


@helper
def put(target: int, size: int, known: Region, slot: int, item: int) -> bool:
    """Hand an object over to a slot, in place of another one; false where there is none."""
    place = load_64(known, 8 * slot)
    before = load_64((target, size), place)
    store_64((target, size), place, item)
    if before != NULL:
        let_go(before)
    return item != NULL


@helper
def put_int(target: int, size: int, known: Region, slot: int, value: int) -> bool:
    """Let a slot hold an integer: the one that stands there, where nobody else has it; false where there is none."""
    before = load_64((target, size), load_64(known, 8 * slot))
    if before != NULL and LARGEST_SHARED < value < 1 << (2 * DIGIT_BITS):
        is_long, head = value > DIGIT, (before, SHORT_SIZE)
        tag = load_64(known, 8 * (LONG_TAG if is_long else SHORT_TAG))
        is_own = load_64(head, REFERENCES_AT) == 1 and load_64(head, TYPE_AT) == load_64(known, 8 * INT)
        if is_own and load_64(head, TAG_AT) == tag:
            if is_long:
                store_64((before, LONG_SIZE), DIGITS_AT, value & DIGIT | value >> DIGIT_BITS << 32)
            else:
                store_32(head, DIGITS_AT, value)
            return True
    handed_over: bool = put(target, size, known, slot, new_int(value))
    return handed_over


@helper
def bytes_or_none(data: Region, position: int, size: int, known: Region) -> int:
    """New bytes from a region, or None where the size is negative."""
    made: int = new_bytes(data, position, size) if size >= 0 else shared(load_64(known, 8 * NOTHING))
    return made
