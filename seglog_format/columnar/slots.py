"""Hand objects over to the slots of objects that a kernel has just made, and that nothing else refers to yet.

No object that Python code can see is ever changed, and slots are filled by `PyMember_SetOne` only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper
from seglog_format.columnar.interpreter import NULL, decref, new_bytes, new_int, set_member
from seglog_format.columnar.memory import load_64

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

NOTHING: Final = 0
"""Of what is known of the interpreter: None."""
KNOWN_SLOTS: Final = 1


class UnknownLayoutError(Exception):
    """The interpreter lays its objects out in a way that is not known here."""


@helper
def put(target: int, known: Region, slot: int, item: int) -> bool:
    """Hand an object over to an empty slot of a new one; false where there is none."""
    if item == NULL:
        return False
    set_member(target, load_64(known, 8 * slot), item)
    decref(item)
    return True


@helper
def put_shared(target: int, known: Region, slot: int, item: int) -> bool:
    """Let a slot hold one more reference to an object."""
    set_member(target, load_64(known, 8 * slot), item)
    return True


@helper
def put_int(target: int, known: Region, slot: int, value: int) -> bool:
    """Let a slot hold an integer; false where there is no memory for it."""
    found: bool = put(target, known, slot, new_int(value))
    return found


@helper
def put_bytes(target: int, known: Region, slot: int, data: Region, position: int, count: int) -> bool:
    """Let a slot hold bytes from a region, or None where their count is negative; false where there is no memory."""
    if count < 0:
        is_none: bool = put_shared(target, known, slot, load_64(known, 8 * NOTHING))
        return is_none
    found: bool = put(target, known, slot, new_bytes(data, position, count))
    return found
