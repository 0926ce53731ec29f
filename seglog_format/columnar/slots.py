"""Store objects in the slots of objects that a kernel has just created, and that no other object refers to yet.

Objects that Python code can see are never changed, and only `PyMember_SetOne` fills slots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper
from seglog_format.columnar.interpreter import NULL, decref, new_bytes, new_int, set_member
from seglog_format.columnar.memory import load_64

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

NOTHING: Final = 0
"""Index of None in the known objects."""
KNOWN_SLOTS: Final = 1


class UnknownLayoutError(Exception):
    """The layout of this interpreter's objects is unknown."""


@helper
def put(target: int, known: Region, slot: int, item: int) -> bool:
    """Store an object in an empty slot of a new object, and release the reference; return False if it is `NULL`."""
    if item == NULL:
        return False
    set_member(target, load_64(known, 8 * slot), item)
    decref(item)
    return True


@helper
def put_shared(target: int, known: Region, slot: int, item: int) -> bool:
    """Store a new reference to an object in a slot."""
    set_member(target, load_64(known, 8 * slot), item)
    return True


@helper
def put_int(target: int, known: Region, slot: int, value: int) -> bool:
    """Store an integer in a slot; return False if memory has run out."""
    found: bool = put(target, known, slot, new_int(value))
    return found


@helper
def put_bytes(target: int, known: Region, slot: int, data: Region, position: int, count: int) -> bool:
    """Store bytes of a region in a slot, or None if their count is negative; return False if memory has run out."""
    if count < 0:
        is_none: bool = put_shared(target, known, slot, load_64(known, 8 * NOTHING))
        return is_none
    found: bool = put(target, known, slot, new_bytes(data, position, count))
    return found
