"""A kernel that turns rows into `Record` and `Message` objects, like those of the fallback decoder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined, kernel_under_lock
from seglog_format.columnar.entries import entry_size
from seglog_format.columnar.interpreter import (
    NULL,
    decref,
    forget_error,
    in_tuple,
    new_object,
    new_tuple,
    put_in_list,
    put_in_tuple,
)
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
from seglog_format.columnar.memory import load_64, load_be16, load_be32, load_be64, load_i8, load_u8, region
from seglog_format.columnar.messages import message_parts, message_timestamp
from seglog_format.columnar.notes import NOTE_SIZE
from seglog_format.columnar.object_layout import (
    APPENDED,
    CREATED,
    HEADER,
    HEADER_SLOTS,
    MESSAGE,
    MESSAGE_SLOTS,
    NO_HEADERS,
    NO_TYPE,
    RECORD,
    RECORD_SLOTS,
    TRUE,
)
from seglog_format.columnar.records import DAMAGED, INT32_BYTES, INT64_BYTES, varint
from seglog_format.columnar.slots import put, put_bytes, put_int, put_shared
from seglog_format.model import INT32_MAX

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region

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
                fine = _fill_message(
                    made,
                    source,
                    packed >> 1,
                    offset,
                    timestamp_ms,
                    timestamp_type,
                    known_,
                )
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
    made: int,
    data: Region,
    first: int,
    offset: int,
    timestamp_ms: int,
    timestamp_type: int,
    known: Region,
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
