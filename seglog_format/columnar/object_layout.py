"""The layout of Python objects that a kernel needs to create `Record` and `Message` objects."""

from __future__ import annotations

import ctypes
import platform
import sysconfig
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.slots import KNOWN_SLOTS, UnknownLayoutError
from seglog_format.model import TimestampType
from seglog_format.record_model import Message, Record, RecordHeader

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Numbers

NO_HEADERS, TRUE, NO_TYPE, CREATED, APPENDED = range(KNOWN_SLOTS, KNOWN_SLOTS + 5)
"""Indexes in the known objects, after those of `slots`: single objects, of which the last three are the timestamp
types."""
RECORD, MESSAGE, HEADER = range(APPENDED + 1, APPENDED + 4)
"""Indexes of types; the addresses of the descriptions of their slots (`Member`) follow."""
RECORD_SLOTS: Final = HEADER + 1
MESSAGE_SLOTS: Final = RECORD_SLOTS + 11
HEADER_SLOTS: Final = MESSAGE_SLOTS + 12
OBJECT_OR_NOTHING: Final = 16
"""The type of a slot that may be empty (``Py_T_OBJECT_EX``)."""


class Member(ctypes.Structure):
    """``PyMemberDef``: the description of a slot for `PyMember_SetOne`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int),
        ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


MEMBERS: Final[list[ctypes.Array[Member]]] = []
"""The descriptions that kernels refer to, kept until the process ends."""


@cache
def can_make_objects() -> bool:
    """Return whether `objects.make_objects` supports this interpreter."""
    try:
        known_objects()
    except UnknownLayoutError:
        return False
    return True


@cache
def known_objects() -> Numbers:
    """Return the facts about the interpreter that the kernel needs: addresses of objects, and positions of slots.

    Raises:
        UnknownLayoutError: the layout of this interpreter differs from that of CPython with its lock.
    """
    if platform.python_implementation() != "CPython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise UnknownLayoutError
    found = [*map(id, (None, (), True, *TimestampType, Record, Message, RecordHeader))]
    for kind in (Record, Message, RecordHeader):
        found += _members(kind)
    return np.array(found, np.int64)


def _members(kind: type) -> list[int]:
    """Return the addresses of the descriptions of a type's slots, in the order of the fields."""
    offsets = _slots(kind)
    names = [name.encode() for name in kind.__slots__]  # type: ignore[attr-defined]
    described = (Member(name, OBJECT_OR_NOTHING, offset) for name, offset in zip(names, offsets, strict=True))
    members = (Member * len(offsets))(*described)
    MEMBERS.append(members)
    return [ctypes.addressof(member) for member in members]


def _slots(kind: type) -> list[int]:
    """Return the position of each slot in an object of a type, in the order of the fields."""
    marks = [object() for _ in kind.__slots__]  # type: ignore[attr-defined]
    sample = kind(*marks)
    words = (ctypes.c_int64 * (kind.__basicsize__ // 8)).from_address(id(sample))
    found = [list(words).index(id(mark)) * 8 for mark in marks if id(mark) in list(words)]
    if len(found) != len(marks) or not kind.__basicsize__ == 16 + 8 * len(marks):
        raise UnknownLayoutError
    return found
