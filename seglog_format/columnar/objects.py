"""A kernel that turns rows into `Record` and `Message` objects, like those of the fallback decoder."""

from __future__ import annotations

import ctypes
import platform
import sysconfig
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seglog_format.columnar.compiled import helper, inlined, intrinsic, ir, kernel_under_lock, types
from seglog_format.columnar.entries import entry_size
from seglog_format.columnar.layout import (
    BASE_SEQUENCE,
    BATCH_ATTRIBUTES,
    BATCH_MAGIC,
    LOG_APPEND_TIME,
    MAGIC,
    MESSAGE_ATTRIBUTES,
    MESSAGE_CRC,
    OFFSET,
    PREFIX_SIZE,
    SIZE,
)
from seglog_format.columnar.memory import (
    I8,
    I32,
    I64,
    REGION,
    check,
    declare,
    load_64,
    load_be16,
    load_be32,
    load_be64,
    load_i8,
    load_u8,
    pointer,
    region,
)
from seglog_format.columnar.messages import message_parts, message_timestamp
from seglog_format.columnar.notes import NOTE_SIZE
from seglog_format.columnar.records import DAMAGED, INT32_BYTES, INT64_BYTES, varint
from seglog_format.model import INT32_MAX, Message, Record, RecordHeader, TimestampType

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.columnar.arrays import Bytes, Numbers, Region


# -- calls of the interpreter from kernels that hold its lock: they create Python objects, represented by addresses ----
# CPython documents each of these functions. A call fails only if memory has run out: it returns `NULL` then, and
# `forget_error` clears the interpreter's error, because the caller of the kernel raises one that names the file.


NULL: Final = 0
OBJECT: Final = I8.as_pointer()


def _address(builder: Any, value: Any) -> Any:
    return builder.inttoptr(value, OBJECT)


def _maker(name: str, *wanted: Any) -> Callable[[Any, Any, Any, Any], Any]:
    """Generate the call of a function that returns a new object."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        given = [
            _address(builder, each) if kind == OBJECT else each for each, kind in zip(arguments, wanted, strict=True)
        ]
        made = builder.call(declare(builder, name, OBJECT, list(wanted)), given)
        return builder.ptrtoint(made, I64)

    return generate


def _doer(name: str, *wanted: Any, gives: Any = ir.VoidType()) -> Callable[[Any, Any, Any, Any], Any]:  # noqa: B008 - a constant
    """Generate the call of a function whose result is not needed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        given = [
            _address(builder, each) if kind == OBJECT else each for each, kind in zip(arguments, wanted, strict=True)
        ]
        builder.call(declare(builder, name, gives, list(wanted)), given)
        return context.get_dummy_value()

    return generate


@intrinsic
def new_int(typing: Any, value: Any) -> Any:
    """Return a Python integer."""
    del typing, value
    return types.int64(types.int64), _maker("PyLong_FromLongLong", I64)


@intrinsic
def new_tuple(typing: Any, count: Any) -> Any:
    """Return a new tuple with empty slots; `put_in_tuple` fills it before other code can see it."""
    del typing, count
    return types.int64(types.int64), _maker("PyTuple_New", I64)


@intrinsic
def new_object(typing: Any, kind: Any, count: Any) -> Any:
    """Return a new object of a type, with empty slots; the count is 0."""
    del typing, kind, count
    return types.int64(types.int64, types.int64), _maker("PyType_GenericAlloc", OBJECT, I64)


@intrinsic
def new_bytes(typing: Any, data: Any, position: Any, size: Any) -> Any:
    """Return a bytes object, copied from a region."""
    del typing, data, position, size

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        where, position, size = arguments
        check(context, builder, where, position, size)
        index = pointer(context, builder, where, position, 0)
        made = builder.call(declare(builder, "PyBytes_FromStringAndSize", OBJECT, [OBJECT, I64]), [index, size])
        return builder.ptrtoint(made, I64)

    return types.int64(REGION, types.int64, types.int64), generate


@intrinsic
def put_in_tuple(typing: Any, target: Any, index: Any, item: Any) -> Any:
    """Store an object in a new tuple, which takes over the reference."""
    del typing, target, index, item
    kinds = (types.int64, types.int64, types.int64)
    return types.void(*kinds), _doer("PyTuple_SetItem", OBJECT, I64, OBJECT, gives=I32)


@intrinsic
def put_in_list(typing: Any, target: Any, index: Any, item: Any) -> Any:
    """Store an object in a list in place of another one; the list takes over the reference."""
    del typing, target, index, item
    kinds = (types.int64, types.int64, types.int64)
    return types.void(*kinds), _doer("PyList_SetItem", OBJECT, I64, OBJECT, gives=I32)


@intrinsic
def in_tuple(typing: Any, source: Any, index: Any) -> Any:
    """Return an item of a tuple, without a new reference."""
    del typing, source, index
    return types.int64(types.int64, types.int64), _maker("PyTuple_GetItem", OBJECT, I64)


@intrinsic
def set_member(typing: Any, target: Any, member: Any, item: Any) -> Any:
    """Store a new reference to an object in a slot of another object, which a `PyMemberDef` describes."""
    del typing, target, member, item
    kinds = (types.int64, types.int64, types.int64)
    return types.void(*kinds), _doer("PyMember_SetOne", OBJECT, OBJECT, OBJECT, gives=I32)


@intrinsic
def decref(typing: Any, item: Any) -> Any:
    """Release one reference to an object, if it is not `NULL`."""
    del typing, item
    return types.void(types.int64), _doer("Py_DecRef", OBJECT)


@intrinsic
def forget_error(typing: Any) -> Any:
    """Clear the error that the interpreter has set."""
    del typing
    return types.void(), _doer("PyErr_Clear")


# -- store objects in the slots of objects that a kernel has just created, and that no other object refers to yet ------
# Objects that Python code can see are never changed, and only `PyMember_SetOne` fills slots.


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


# -- the layout of Python objects that a kernel needs to create `Record` and `Message` objects -------------------------


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


# -- a kernel that turns rows into `Record` and `Message` objects ------------------------------------------------------


ROW, END_ROW, NOTE, TARGET = range(4)
"""Fields of a job: the first row and the one after the last, the note of the first row's entry, the list to fill."""
POSITIONS_AT, OFFSETS_AT, TIMESTAMPS_AT, NOTES_AT, NOTED = range(4, 9)
"""Positions in the block, and the number of noted entries."""
JOB_SIZE: Final = 9


@kernel_under_lock
def make_objects(log: Bytes, arena: Bytes, block: Bytes, job: Numbers, known: Numbers) -> int:
    """Create the objects of some rows, and store them in a list.

    Args:
        log: bytes of the log.
        arena: decompressed bytes.
        block: rows, their positions and the notes of their entries, from another kernel.
        job: see above; afterwards the row and the note to continue with.
        known: facts about the interpreter (`object_layout.known_objects`).

    Returns:
        Number of rows without objects: memory has run out, or the file has changed since the block was filled.
    """
    data, arena_, block_, known_ = region(log), region(arena), region(block), region(known)
    row, end, note, first = job[ROW], job[END_ROW], job[NOTE], job[ROW]
    while row < end and note < job[NOTED]:
        noted = job[NOTES_AT] + NOTE_SIZE * note
        entry, stop = load_64(block_, noted), load_64(block_, noted + 8)
        if entry_size(data, entry, len(log)) < 0:
            break
        is_batch = load_u8(data, entry + MAGIC) == BATCH_MAGIC
        base_sequence = load_be32(data, entry + BASE_SEQUENCE) if is_batch else -1
        timestamp_type = load_64(known_, 8 * _timestamp_type(data, entry))
        while row < min(end, stop):
            packed = load_64(block_, job[POSITIONS_AT] + 8 * row)
            source = arena_ if packed & 1 else data
            offset = load_64(block_, job[OFFSETS_AT] + 8 * row)
            timestamp_ms = load_64(block_, job[TIMESTAMPS_AT] + 8 * row)
            kind = load_64(known_, 8 * (RECORD if is_batch else MESSAGE))
            made = new_object(kind, 0)
            if made == NULL:
                break
            if is_batch:
                fine = _fill_record(
                    made, source, packed >> 1, offset, timestamp_ms, timestamp_type, base_sequence, known_
                )
            else:
                fine = _fill_message(made, source, packed >> 1, offset, timestamp_ms, timestamp_type, known_)
            put_in_list(job[TARGET], row - first, made)
            if not fine:
                break
            row += 1
        if row < min(end, stop):
            break
        note += 1 if row == stop else 0
    if row < end:
        forget_error()
    job[ROW], job[NOTE] = row, note
    return int(end - row)


@inlined
def _timestamp_type(data: Region, entry: int) -> int:
    """Return the index in the known objects of an entry's timestamp type."""
    magic = load_u8(data, entry + MAGIC)
    if magic == 0:
        return NO_TYPE
    is_batch = magic == BATCH_MAGIC
    attributes = load_be16(data, entry + BATCH_ATTRIBUTES) if is_batch else load_u8(data, entry + MESSAGE_ATTRIBUTES)
    return APPENDED if attributes & LOG_APPEND_TIME else CREATED


@inlined
def _sized(data: Region, position: int, stop: int) -> tuple[int, int, int]:
    """Return start and size (negative: null) of bytes after their length, and the position after them."""
    size, position = varint(data, position, stop, INT32_BYTES)
    if position < 0 or size > stop - position:
        return 0, 0, DAMAGED
    return position, size, position + max(size, 0)


@inlined
def _fill_record(
    made: int,
    data: Region,
    first: int,
    offset: int,
    timestamp_ms: int,
    timestamp_type: int,
    base_sequence: int,
    known: Region,
) -> bool:
    """Fill a record of a batch; return whether that was possible."""
    length, start = varint(data, first, data[1], INT32_BYTES)
    stop = start + length
    if start < 0 or length < 1 or stop > data[1]:
        return False
    timestamp_delta, position = varint(data, start + 1, stop, INT64_BYTES)
    offset_delta, position = varint(data, position, stop, INT32_BYTES)
    key, key_size, position = _sized(data, position, stop)
    value, value_size, position = _sized(data, position, stop)
    header_count, position = varint(data, position, stop, INT32_BYTES)
    if position < 0 or header_count < 0 or header_count > stop - position:
        return False
    sequence = -1
    if base_sequence >= 0:
        sequence = base_sequence + offset_delta
        sequence = sequence - (1 << 31) if sequence > INT32_MAX else sequence
    fine = put_int(made, known, RECORD_SLOTS, offset)
    fine &= put_int(made, known, RECORD_SLOTS + 1, timestamp_ms)
    fine &= put_bytes(made, known, RECORD_SLOTS + 2, data, key, key_size)
    fine &= put_bytes(made, known, RECORD_SLOTS + 3, data, value, value_size)
    if header_count:
        fine &= put(made, known, RECORD_SLOTS + 4, _headers(data, position, stop, header_count, known))
    else:
        fine &= put_shared(made, known, RECORD_SLOTS + 4, load_64(known, 8 * NO_HEADERS))
    fine &= put_int(made, known, RECORD_SLOTS + 5, sequence)
    fine &= put_int(made, known, RECORD_SLOTS + 6, load_i8(data, start))
    fine &= put_int(made, known, RECORD_SLOTS + 7, timestamp_delta)
    fine &= put_int(made, known, RECORD_SLOTS + 8, offset_delta)
    fine &= put_int(made, known, RECORD_SLOTS + 9, stop - first)
    fine &= put_shared(made, known, RECORD_SLOTS + 10, timestamp_type)
    return fine


@helper
def _headers(data: Region, position: int, stop: int, count: int, known: Region) -> int:
    """Return a tuple of headers, or `NULL`."""
    found: int = _new_headers(count, known)
    for number in range(count if found != NULL else 0):
        key, key_size, position = _sized(data, position, stop)
        value, value_size, position = _sized(data, position, stop)
        fine = position >= 0 and key_size >= 0
        if fine:
            made = in_tuple(found, number)
            fine = put_bytes(made, known, HEADER_SLOTS, data, key, key_size)
            fine &= put_bytes(made, known, HEADER_SLOTS + 1, data, value, value_size)
        if not fine:
            decref(found)
            return NULL
    return found


@helper
def _new_headers(count: int, known: Region) -> int:
    """Return a new tuple for headers, or `NULL`."""
    found: int = new_tuple(count)
    for number in range(count if found != NULL else 0):
        made = new_object(load_64(known, 8 * HEADER), 0)
        if made == NULL:
            decref(found)
            return NULL
        put_in_tuple(found, number, made)
    return found


@inlined
def _fill_message(
    made: int, data: Region, first: int, offset: int, timestamp_ms: int, timestamp_type: int, known: Region
) -> bool:
    """Fill a message; return whether that was possible. The kernel that made its row has verified the checksum."""
    size = entry_size(data, first, data[1])
    if size < 0 or load_u8(data, first + MAGIC) == BATCH_MAGIC:
        return False
    key, key_size, value, value_size = message_parts(data, first, size)
    if key < 0:
        return False
    stored = load_be32(data, first + MESSAGE_CRC) & 0xFFFFFFFF
    magic = load_u8(data, first + MAGIC)
    fine = put_int(made, known, MESSAGE_SLOTS, offset)
    fine &= put_int(made, known, MESSAGE_SLOTS + 1, timestamp_ms)
    fine &= put_bytes(made, known, MESSAGE_SLOTS + 2, data, key, key_size)
    fine &= put_bytes(made, known, MESSAGE_SLOTS + 3, data, value, value_size)
    fine &= put_int(made, known, MESSAGE_SLOTS + 4, magic)
    fine &= put_int(made, known, MESSAGE_SLOTS + 5, stored)
    fine &= put_shared(made, known, MESSAGE_SLOTS + 6, load_64(known, 8 * TRUE))
    fine &= put_int(made, known, MESSAGE_SLOTS + 7, load_i8(data, first + MESSAGE_ATTRIBUTES))
    fine &= put_int(made, known, MESSAGE_SLOTS + 8, load_be64(data, first + OFFSET))
    fine &= put_int(made, known, MESSAGE_SLOTS + 9, message_timestamp(data, first))
    fine &= put_int(made, known, MESSAGE_SLOTS + 10, load_be32(data, first + SIZE) + PREFIX_SIZE)
    timestamp_type = timestamp_type if magic else load_64(known, 8 * NO_TYPE)
    fine &= put_shared(made, known, MESSAGE_SLOTS + 11, timestamp_type)
    return fine
