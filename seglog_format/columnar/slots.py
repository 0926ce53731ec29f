"""What stands in the slots of Python objects: handed over, or written anew where nobody else has it.

An integer or bytes that only a slot refers to are seen by nobody; they take another number, or as many other bytes, in
a tenth of the time that it takes to give them back and to make new ones. How the interpreter lays them out is looked up
before (`int_layout`, `check_bytes_layout`).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, kernel_under_lock
from seglog_format.columnar.copying import PAIR, WORD
from seglog_format.columnar.interpreter import NULL, let_go, new_bytes, new_int, shared
from seglog_format.columnar.memory import copy_16, load_64, region, store_32, store_64

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Numbers, Region

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
SMALLEST_SHARED, LARGEST_SHARED = -5, 256
"""Integers from the first to the last are there once for everybody, side by side."""
SHARED_SIZE: Final = 32

COUNT_AT: Final = 16
"""Of bytes: how many they are, what their hash is, or that nobody has asked for it, and the bytes themselves."""
HASH_AT: Final = 24
BYTES_AT: Final = 32
NO_HASH: Final = -1
SAMPLE: Final = b"a sample"
SPARE_SIZES: Final = 512
"""Bytes of fewer than so many are set aside: a number for each size, of the last that was, which leads to the one
before (where its hash stood); and instead of one for no bytes, how many there are."""
MOST_SPARE: Final = 2048

NOTHING, INT, SHORT_TAG, LONG_TAG, ZERO, BYTES = range(6)
"""Of what is known of the interpreter: None, the type of integers, the tags of those of one and of two digits, and the
one that is 0; the type of bytes."""
KNOWN_SLOTS: Final = 6


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
    if any(id(value) != id(0) + SHARED_SIZE * value for value in range(SMALLEST_SHARED, LARGEST_SHARED + 1)):
        raise UnknownLayoutError
    return tags[0], tags[1]


def check_bytes_layout() -> None:
    """See whether bytes are laid out as is thought here.

    Raises:
        UnknownLayoutError: they are not.
    """
    fields = (id(bytes), len(SAMPLE), hash(SAMPLE))  # the hash stands there only once somebody has asked for it
    words = (ctypes.c_int64 * (BYTES_AT // 8)).from_address(id(SAMPLE))
    has_hash = (words[TYPE_AT // 8], words[COUNT_AT // 8], words[HASH_AT // 8]) == fields
    if not has_hash or ctypes.string_at(id(SAMPLE) + BYTES_AT, len(SAMPLE)) != SAMPLE:
        raise UnknownLayoutError


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
def put_shared(target: int, size: int, known: Region, slot: int, item: int) -> bool:
    """Let a slot hold an object that there is one of, and that others have too."""
    before = load_64((target, size), load_64(known, 8 * slot))
    same: bool = before == item or put(target, size, known, slot, shared(item))
    return same


@helper
def put_int(target: int, size: int, known: Region, slot: int, value: int) -> bool:
    """Let a slot hold an integer: the one that stands there, where nobody else has it; false where there is none."""
    before = load_64((target, size), load_64(known, 8 * slot))
    if SMALLEST_SHARED <= value <= LARGEST_SHARED:
        item = load_64(known, 8 * ZERO) + SHARED_SIZE * value
        is_shared: bool = put_shared(target, size, known, slot, item)
        return is_shared
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
def put_bytes(
    target: int, size: int, known: Region, spare: Region, slot: int, data: Region, position: int, count: int
) -> bool:
    """Let a slot hold bytes from a region, or None where their count is negative; false where there are none.

    Bytes of another size, which nobody else has, are set aside until some of that size are wanted.
    """
    before = load_64((target, size), load_64(known, 8 * slot))
    item = load_64(known, 8 * NOTHING)
    if count < 0:
        is_none: bool = put_shared(target, size, known, slot, item)
        return is_none
    is_own, had = _own_bytes(before, known)
    if is_own and had == count:
        _write(before, data, position, count)
        return True
    item = _taken(spare, count)
    if item == NULL:
        item = new_bytes(data, position, count)
    else:
        _write(item, data, position, count)
    store_64((target, size), load_64(known, 8 * slot), item)
    if is_own and load_64(spare, 0) < MOST_SPARE:
        store_64((before, BYTES_AT), HASH_AT, load_64(spare, 8 * had))
        store_64(spare, 8 * had, before)
        store_64(spare, 0, load_64(spare, 0) + 1)
    elif before != NULL:
        let_go(before)
    return item != NULL


@helper
def _own_bytes(item: int, known: Region) -> tuple[bool, int]:
    """Whether something is bytes that only one slot refers to, of a size that is used again; and their count."""
    if item == NULL or load_64((item, HEAD_SIZE), REFERENCES_AT) != 1:
        return False, 0
    if load_64((item, HEAD_SIZE), TYPE_AT) != load_64(known, 8 * BYTES):
        return False, 0
    count = load_64((item, BYTES_AT), COUNT_AT)
    return WORD <= count < SPARE_SIZES, count


@helper
def _taken(spare: Region, count: int) -> int:
    """Bytes of a size that were set aside, or `NULL`."""
    if count < WORD or count >= SPARE_SIZES:
        return NULL
    item = load_64(spare, 8 * count)
    if item != NULL:
        store_64(spare, 8 * count, load_64((item, BYTES_AT), HASH_AT))
        store_64(spare, 0, load_64(spare, 0) - 1)
    return item


@kernel_under_lock
def give_back(spare: Numbers) -> int:
    """Give all bytes back that were set aside. Returns how many there were."""
    table, count = region(spare), 0
    for size in range(WORD, SPARE_SIZES):
        item = _taken(table, size)
        while item != NULL:
            let_go(item)
            item, count = _taken(table, size), count + 1
    return count


@helper
def _write(item: int, data: Region, position: int, count: int) -> None:
    """Let bytes be others, a word or more, and not a byte behind them."""
    target, at, done = (item, BYTES_AT + count), BYTES_AT, 0
    store_64(target, HASH_AT, NO_HASH)
    while done < count - PAIR:
        copy_16(target, at + done, data, position + done)
        done += PAIR
    if count > PAIR:
        copy_16(target, at + count - PAIR, data, position + count - PAIR)
        return
    store_64(target, at, load_64(data, position))
    store_64(target, at + count - WORD, load_64(data, position + count - WORD))
