"""The prefilter kernel: skips entries as long as no check can report a finding (chapters 20 to 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.chunks import chunk_of
from seglog_format.columnar.compiled import helper, inlined, int64, kernel, uint64
from seglog_format.columnar.entries import entry_is_valid, entry_size, message_is_valid
from seglog_format.columnar.layout import (
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    CONTROL,
    GREATEST_OFFSET,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LOG_APPEND_TIME,
    LZ4,
    MAGIC,
    MAX_TIMESTAMP,
    MESSAGE_ATTRIBUTES,
    MIN_RECORD_SIZE,
    NONE,
    OFFSET,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
)
from seglog_format.columnar.lz4 import BLOCK_HEADER_SIZE as LZ4_BLOCK_HEADER_SIZE
from seglog_format.columnar.lz4 import (
    CHECKSUM_SIZE,
    CONTENT_SIZE_SIZE,
    DESCRIPTOR,
    HAS_CONTENT_CHECKSUM,
    HAS_CONTENT_SIZE,
    STORED,
)
from seglog_format.columnar.lz4 import HEADER_SIZE as LZ4_HEADER_SIZE
from seglog_format.columnar.memory import (
    load_64,
    load_be16,
    load_be32,
    load_be64,
    load_le32,
    load_le64,
    load_u8,
    region,
    store_64,
)
from seglog_format.columnar.messages import inner_size, message_parts, message_timestamp
from seglog_format.columnar.plan import (
    CAUSE,
    CAUSE_CHECKSUM,
    CAUSE_COMPRESSION,
    CAUSE_FRAMING,
    CAUSE_OFFSETS,
    CAUSE_RECORDS,
    CHECKSUM_PATH,
    DECOMPRESS,
    FALLBACK,
    FIRST_ALLOWED,
    FULL,
    POSITION,
    PREVIOUS,
    ROWS,
)
from seglog_format.columnar.records import DAMAGED, INT32_BYTES, INT64_BYTES
from seglog_format.columnar.snappy import BLOCK_HEADER_SIZE as SNAPPY_BLOCK_HEADER_SIZE
from seglog_format.columnar.snappy import HEADER_SIZE as XERIAL_HEADER_SIZE
from seglog_format.columnar.snappy import XERIAL_MAGIC
from seglog_format.model import INT32_MAX, NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table


# -- the end of compressed data: readers ignore what follows it, and checks report that (chapter 34) -------------------


@helper
def is_all_used(data: Region, start: int, end: int, codec: int) -> bool:
    """Return whether decompression uses all bytes of lz4 or snappy data; other decompressors check that themselves."""
    if codec == LZ4:
        return _frame_end(data, start, end) == end
    return codec != SNAPPY or _blocks_end(data, start, end) == end


@inlined
def _frame_end(data: Region, start: int, end: int) -> int:
    """Return the position after an lz4 frame."""
    flags = load_u8(data, start + DESCRIPTOR)
    position = start + LZ4_HEADER_SIZE + (CONTENT_SIZE_SIZE if flags & HAS_CONTENT_SIZE else 0)
    while end - position >= LZ4_BLOCK_HEADER_SIZE:
        size = load_le32(data, position) & ~STORED
        position += LZ4_BLOCK_HEADER_SIZE + size
        if size == 0:
            return position + (CHECKSUM_SIZE if flags & HAS_CONTENT_CHECKSUM else 0)
    return -1


@inlined
def _blocks_end(data: Region, start: int, end: int) -> int:
    """Return the position after the last xerial block, or after a bare block, which is always the whole data."""
    if end - start < XERIAL_HEADER_SIZE or load_64(data, start) != XERIAL_MAGIC:
        return end
    position = start + XERIAL_HEADER_SIZE
    while end - position >= SNAPPY_BLOCK_HEADER_SIZE:
        if end - position >= XERIAL_HEADER_SIZE and load_64(data, position) == XERIAL_MAGIC:
            position += XERIAL_HEADER_SIZE
        else:
            size = load_be32(data, position)
            if size < 0:
                return -1
            position += SNAPPY_BLOCK_HEADER_SIZE + size
    return position


# -- the prefilter of messages of magic 0 and 1, plain and in wrappers (chapter 33) ------------------------------------


NOWHERE: Final = (-1, -1)
KNOWN_BITS: Final = (CODEC_MASK, CODEC_MASK | LOG_APPEND_TIME)
"""Attribute bits that magic 0 and magic 1 define."""


@helper
def value_of(data: Region, position: int, size: int) -> tuple[int, int]:
    """Return start and end of the value of a keyless message, if it is not null and ends the message; or `NOWHERE`."""
    _, key_size, value, value_size = message_parts(data, position, size)
    if value < 0 or key_size >= 0 or value_size < 0 or value + value_size != position + size:
        return NOWHERE
    return value, value + value_size


@inlined
def ends_with_value(data: Region, position: int, size: int) -> bool:
    """Return whether key and value fit into a message, and no bytes follow the value."""
    key, _, value, value_size = message_parts(data, position, size)
    return key >= 0 and value + max(value_size, 0) == position + size


@inlined
def has_known_bits(data: Region, position: int) -> bool:
    """Return whether only attribute bits are set that the message's magic defines."""
    known = KNOWN_BITS[1] if load_u8(data, position + MAGIC) == 1 else KNOWN_BITS[0]
    return load_u8(data, position + MESSAGE_ATTRIBUTES) & ~known == 0


@helper
def prefilter_wrapped(
    path: int, data: Region, start: int, end: int, magic: int, offset: int, attributes: int, timestamp_ms: int
) -> int:
    """Prefilter the messages of a wrapper.

    Args:
        path: of computing checksums.
        data: the decompressed messages.
        start: of them.
        end: of them.
        magic: of the wrapper.
        offset: of it.
        attributes: of it.
        timestamp_ms: of it.

    Returns:
        The offset of the first message; negative if a message is not covered.
    """
    position, first, last, largest_ms = start, -1, -1, -(1 << 63)
    while position < end:
        size = inner_size(data, position, end)
        if size <= 0 or load_u8(data, position + MAGIC) != magic:
            return -1
        stored = load_be64(data, position + OFFSET)
        if (
            stored <= last
            or not ends_with_value(data, position, size)
            or not message_is_valid(path, data, position, size)
        ):
            return -1
        first = stored if first < 0 else first
        last, largest_ms = stored, max(message_timestamp(data, position), largest_ms)
        position += size
    if last < 0:
        return -1
    base = offset - last
    is_right_base = base == 0 if magic == 0 or offset == 0 else base >= 0
    has_right_time = magic == 0 or attributes & LOG_APPEND_TIME != 0 or largest_ms == timestamp_ms
    return base + first if is_right_base and has_right_time else -1


# -- the prefilter of records of magic 2: well formed, and of the common encoding (chapter 31) -------------------------
# The checks read every record that does not pass, damaged or valid, and only they report findings.


UNCOVERED: Final = DAMAGED
"""Returned instead of a position if the bytes before it do not pass."""
NULL: Final = -1
ABORT: Final = 0
COMMIT: Final = 1
MARKER_KEY_SIZE: Final = 4
MARKER_VALUE_SIZE: Final = 6
NOT_ASCII: Final = 0x8080808080808080
LAST_BYTES: Final = (0x0F, 0x01)
"""Maximum last byte of a number of 32 bits in five bytes, and of one of 64 bits in ten."""


@helper
def exact_varint(data: Region, position: int, end: int, most: int) -> tuple[int, int]:
    """Read a number in its shortest encoding of at most ``most`` bytes, and the position after it; or `UNCOVERED`.

    A position that already is `UNCOVERED` stays so.
    """
    if position < 0 or position >= end:
        return 0, UNCOVERED
    byte = load_u8(data, position)
    if byte < 128:
        return byte >> 1 ^ -(byte & 1), position + 1
    if position + 1 < end:
        second = load_u8(data, position + 1)
        if 0 < second < 128:
            value = byte & 127 | second << 7
            return value >> 1 ^ -(value & 1), position + 2
    return _long_exact_varint(data, position, min(position + most, end), most)


@helper
def _long_exact_varint(data: Region, position: int, stop: int, most: int) -> tuple[int, int]:
    """Read a number of any size, as `exact_varint` does; few are longer than two bytes."""
    value, shift, start = uint64(0), uint64(0), position
    while position < stop:
        byte = load_u8(data, position)
        value |= uint64(byte & 127) << shift
        position += 1
        if byte < 128:
            largest = LAST_BYTES[0] if most == INT32_BYTES else LAST_BYTES[1]
            if byte == 0 or (position - start == most and byte > largest):
                return 0, UNCOVERED
            return int64(value >> uint64(1)) ^ -int64(value & uint64(1)), position
        shift += uint64(7)
    return 0, UNCOVERED


@helper
def exact_bytes(data: Region, position: int, stop: int) -> tuple[int, int, int]:
    """Return start and size (-1: null) of bytes after their length, and the position after them."""
    size, position = exact_varint(data, position, stop, INT32_BYTES)
    if position < 0 or size < NULL or size > stop - position:
        return 0, 0, UNCOVERED
    return position, size, position + max(size, 0)


@inlined
def prefilter_records(
    data: Region, start: int, end: int, count: int, last_delta: int, base_ms: int
) -> tuple[bool, int]:
    """Prefilter all records of a batch.

    Args:
        data: the bytes with the decompressed section.
        start: of the section.
        end: of it.
        count: records that the header states.
        last_delta: the last offset delta that the header states.
        base_ms: base timestamp.

    Returns:
        Whether all records pass, and the largest timestamp of a record by its own delta.
    """
    position, before, largest_ms = start, -1, -(1 << 63)
    for _ in range(count):
        length, position = exact_varint(data, position, end, INT32_BYTES)
        if position < 0 or length < 1 or length > end - position:
            return False, 0
        stop = position + length
        if load_u8(data, position) != 0:
            return False, 0
        timestamp_delta, position = exact_varint(data, position + 1, stop, INT64_BYTES)
        offset_delta, position = exact_varint(data, position, stop, INT32_BYTES)
        _, _, position = exact_bytes(data, position, stop)
        _, _, position = exact_bytes(data, position, stop)
        header_count, position = exact_varint(data, position, stop, INT32_BYTES)
        if header_count:
            position = _after_headers(data, position, stop, header_count)
        if position != stop or offset_delta <= before:
            return False, 0
        timestamp_ms = int64(uint64(base_ms) + uint64(timestamp_delta))  # may wrap, which signed numbers may not
        before, largest_ms = offset_delta, max(timestamp_ms, largest_ms)
    return position == end and before <= last_delta, largest_ms


@inlined
def _after_headers(data: Region, position: int, stop: int, count: int) -> int:
    """Return the position after ``count`` headers; `UNCOVERED` also if a key is not ASCII."""
    if count < 0:
        return UNCOVERED
    for _ in range(count):
        key, key_size, position = exact_bytes(data, position, stop)
        _, _, position = exact_bytes(data, position, stop)
        if position < 0 or key_size < 0 or not _is_ascii(data, key, key + key_size):
            return UNCOVERED
    return position


@inlined
def _is_ascii(data: Region, position: int, end: int) -> bool:
    """Return whether bytes are ASCII, which is valid UTF-8."""
    while end - position >= 8:
        if load_le64(data, position) & uint64(NOT_ASCII):
            return False
        position += 8
    bits = 0
    while position < end:
        bits |= load_u8(data, position)
        position += 1
    return bits < 128


@helper
def end_marker(data: Region, position: int, end: int) -> tuple[int, int, int]:
    """Return the end marker in a record that passed: type (or `UNCOVERED`), epoch, and time delta.

    The epoch is the coordinator's.
    """
    _, position = exact_varint(data, position, end, INT32_BYTES)
    timestamp_delta, position = exact_varint(data, position + 1, end, INT64_BYTES)
    _, position = exact_varint(data, position, end, INT32_BYTES)
    key, key_size, position = exact_bytes(data, position, end)
    value, value_size, position = exact_bytes(data, position, end)
    if position < 0 or key_size != MARKER_KEY_SIZE or value_size != MARKER_VALUE_SIZE:
        return UNCOVERED, 0, 0
    kind = load_be16(data, key + 2)
    if load_be16(data, key) != 0 or load_be16(data, value) != 0 or (kind != ABORT and kind != COMMIT):  # noqa: PLR1714 - numba
        return UNCOVERED, 0, 0
    return kind, load_be32(data, value + 2), timestamp_delta


# -- the prefilter kernel ----------------------------------------------------------------------------------------------


COLUMNS: Final = (
    "position",
    "magic",
    "base_offset",
    "last_offset",
    "max_timestamp_ms",
    "records_count",
    "producer_id",
    "flags",
    "leader_epoch",
)
"""Columns of the table of entries. A wrapper's base offset is `WRAPPER`; a message is one record of epoch -1."""
COLUMN: Final = {name: number for number, name in enumerate(COLUMNS)}
ROW_SIZE: Final = 8 * len(COLUMNS)

WRAPPER: Final = -1
HEADER: Final = 1
"""Flag: the records passed, the header must be checked."""
MARKS_ABORT: Final = 2
"""Flag: an end marker that aborts, or a control batch that compaction has emptied."""
DOUBTFUL: Final = -1
"""Returned instead of a start if the entry does not pass; instead of flags it is one of the following."""
DOUBTFUL_OFFSETS: Final = -1 - CAUSE_OFFSETS
DOUBTFUL_CHECKSUM: Final = -1 - CAUSE_CHECKSUM
DOUBTFUL_RECORDS: Final = -1 - CAUSE_RECORDS

STORED_START, STORED_END, STORED_CODEC, STORED_MAGIC = range(4)
"""Facts about an entry that must be decompressed."""

UNKNOWN_BITS: Final = 0xFF80


@kernel
def prefilter_entries(
    log: Bytes, arena: Bytes, chunks: Numbers, plan: Numbers, state: Numbers, table: Table, stored: Numbers
) -> int:
    """Prefilter entries until the table is full, or one does not pass, or must be decompressed.

    Args:
        log: bytes of a log.
        arena: decompressed bytes.
        chunks: entries that were decompressed ahead, by position.
        plan: base offset of the segment, and the path of checksums.
        state: position of the next entry, and last offset of the entry before; afterwards also the number of rows.
        table: a row for each entry that passed.
        stored: afterwards, the position of the compressed bytes of an entry that must be decompressed.

    Returns:
        `FULL`, `FALLBACK` or `DECOMPRESS`, as in `plan`.
    """
    data, arena_, rows = region(log), region(arena), region(table.reshape(-1).view(np.uint8))
    sections_, path, lowest = region(chunks.view(np.uint8)), plan[CHECKSUM_PATH], plan[FIRST_ALLOWED]
    position, previous, row, answer = state[POSITION], state[PREVIOUS], 0, FULL
    while row < len(table):
        size = entry_size(data, position, len(log)) if position >= 0 else DOUBTFUL
        start, end, codec = _content(data, position, size) if size > 0 else (DOUBTFUL, DOUBTFUL, NONE)
        if start < 0:
            answer, state[CAUSE] = FALLBACK, CAUSE_FRAMING if size < 0 else CAUSE_COMPRESSION
            break
        source = data
        if codec != NONE:
            stored[STORED_START], stored[STORED_END], stored[STORED_CODEC] = start, end, codec
            stored[STORED_MAGIC] = load_u8(data, position + MAGIC)
            start, end = chunk_of(sections_, state, position)
            source = arena_
            if start < 0:
                answer = DECOMPRESS
                break
            if not is_all_used(data, stored[STORED_START], stored[STORED_END], codec):
                answer, state[CAUSE] = FALLBACK, CAUSE_COMPRESSION
                break
        bounds, at = (position, size, previous, lowest), row * ROW_SIZE
        if load_u8(data, position + MAGIC) == BATCH_MAGIC:
            flags = _prefilter_batch(path, data, bounds, source, start, end, rows, at)
        else:
            flags = _prefilter_message(path, data, bounds, source, start, end, rows, at)
        if flags < 0:
            answer, state[CAUSE] = FALLBACK, -1 - flags
            break
        store_64(rows, at + 8 * 7, flags)
        previous = table[row, 3]
        position, row = position + size, row + 1
    state[POSITION], state[PREVIOUS], state[ROWS] = position, previous, row
    return answer


@kernel
def find_record(log: Bytes, number: int, timestamp_ms: int) -> int:
    """Return the position of the first record, from a number on, that is not older than a timestamp; -1 without any.

    Args:
        log: bytes of an uncompressed batch that passed.
        number: of the record in the batch, from 0.
        timestamp_ms: milliseconds since 1970.
    """
    data, end, position = region(log), len(log), BATCH_HEADER_SIZE
    is_append_time = load_be16(data, BATCH_ATTRIBUTES) & LOG_APPEND_TIME
    for each in range(load_be32(data, RECORDS_COUNT)):
        length, start = exact_varint(data, position, end, INT32_BYTES)
        if each >= number:
            delta, _ = exact_varint(data, start + 1, end, INT64_BYTES)
            time_ms = int64(uint64(load_be64(data, BASE_TIMESTAMP)) + uint64(delta))
            if (load_be64(data, MAX_TIMESTAMP) if is_append_time else time_ms) >= timestamp_ms:
                return position
        position = start + length
    return -1


@inlined
def _content(data: Region, position: int, size: int) -> tuple[int, int, int]:
    """Return start, end and codec of the records, or of a wrapper's value; no start if they are not covered.

    The codec of uncompressed content is 0.
    """
    if load_u8(data, position + MAGIC) == BATCH_MAGIC:
        start, end = position + BATCH_HEADER_SIZE, position + size
        codec = load_be16(data, position + BATCH_ATTRIBUTES) & CODEC_MASK
        is_empty = start == end and load_be32(data, position + RECORDS_COUNT) == 0
        return (start, end, NONE if is_empty else codec) if codec <= ZSTD else (DOUBTFUL, end, codec)
    codec = load_u8(data, position + MESSAGE_ATTRIBUTES) & CODEC_MASK
    if codec == NONE:
        return position, position, NONE
    start, end = value_of(data, position, size)
    return (start, end, codec) if codec < ZSTD else (DOUBTFUL, end, codec)


@helper
def _prefilter_batch(
    path: int,
    data: Region,
    bounds: tuple[int, int, int, int],
    source: Region,
    start: int,
    end: int,
    rows: Region,
    at: int,
) -> int:
    """Prefilter a batch into a row; return its flags, or why it does not pass.

    Args:
        path: of computing checksums.
        data: bytes of the log.
        bounds: position and size of the batch, last offset of the entry before, base offset of the segment.
        source: the decompressed records.
        start: of them.
        end: of them.
        rows: of the table.
        at: where the row is.
    """
    position, size, previous, lowest = bounds
    base, delta = load_be64(data, position + OFFSET), load_be32(data, position + LAST_OFFSET_DELTA)
    attributes, count = load_be16(data, position + BATCH_ATTRIBUTES), load_be32(data, position + RECORDS_COUNT)
    last, newest_ms = base + delta, load_be64(data, position + MAX_TIMESTAMP)
    if base < 0 or delta < 0 or base > GREATEST_OFFSET - delta or count < 0 or count > (end - start) // MIN_RECORD_SIZE:
        return DOUBTFUL_RECORDS
    if not entry_is_valid(path, data, position, size):
        return DOUBTFUL_CHECKSUM
    passes, largest_ms = prefilter_records(source, start, end, count, delta, load_be64(data, position + BASE_TIMESTAMP))
    if not passes or (count > 0 and attributes & LOG_APPEND_TIME == 0 and largest_ms != newest_ms):
        return DOUBTFUL_RECORDS
    flags = 0 if _has_usual_header(data, position, attributes) and count > delta else HEADER
    if base <= previous or base < lowest or last - lowest > INT32_MAX:
        flags = HEADER
    if attributes & CONTROL:
        kind = _control_type(data, position, attributes, source, start, end, count)
        if kind < 0:
            return DOUBTFUL_RECORDS
        flags |= MARKS_ABORT if kind == ABORT else 0
    producer_id = load_be64(data, position + PRODUCER_ID)
    _store_row(rows, at, (position, BATCH_MAGIC, base, last, newest_ms, count, producer_id))
    store_64(rows, at + 8 * 8, load_be32(data, position + LEADER_EPOCH))
    return flags


@inlined
def _has_usual_header(data: Region, position: int, attributes: int) -> bool:
    """Return whether the fields of a header have a combination that writers produce."""
    producer_id, epoch = load_be64(data, position + PRODUCER_ID), load_be16(data, position + PRODUCER_EPOCH)
    if attributes & UNKNOWN_BITS or load_be32(data, position + LEADER_EPOCH) < -1:
        return False
    if producer_id == NO_PRODUCER_ID:
        return epoch == -1 and attributes & TRANSACTIONAL == 0
    return (
        producer_id >= 0
        and epoch >= 0
        and (attributes & CONTROL != 0 or load_be32(data, position + BASE_SEQUENCE) >= 0)
    )


@inlined
def _control_type(
    data: Region, position: int, attributes: int, source: Region, start: int, end: int, count: int
) -> int:
    """Return the type of the end marker in a control batch, ABORT for an empty one; negative if not covered."""
    if attributes & CODEC_MASK != NONE or count > 1:
        return DOUBTFUL
    if count == 0:
        return ABORT
    if attributes & TRANSACTIONAL == 0 or load_be32(data, position + BASE_SEQUENCE) != -1:
        return DOUBTFUL
    kind, _, _ = end_marker(source, start, end)
    return kind


@helper
def _prefilter_message(
    path: int,
    data: Region,
    bounds: tuple[int, int, int, int],
    source: Region,
    start: int,
    end: int,
    rows: Region,
    at: int,
) -> int:
    """Prefilter a message or a wrapper into a row. Arguments and result are those of `_prefilter_batch`."""
    position, size, previous, lowest = bounds
    offset, magic = load_be64(data, position + OFFSET), load_u8(data, position + MAGIC)
    timestamp_ms, attributes = message_timestamp(data, position), load_u8(data, position + MESSAGE_ATTRIBUTES)
    if not 0 <= offset <= GREATEST_OFFSET:
        return DOUBTFUL_OFFSETS
    if not entry_is_valid(path, data, position, size):
        return DOUBTFUL_CHECKSUM
    if not has_known_bits(data, position):
        return DOUBTFUL_RECORDS
    first, shown = offset, offset
    if attributes & CODEC_MASK == NONE:
        if not ends_with_value(data, position, size):
            return DOUBTFUL_RECORDS
    else:
        first, shown = prefilter_wrapped(path, source, start, end, magic, offset, attributes, timestamp_ms), WRAPPER
    if first <= previous or first < lowest or offset - lowest > INT32_MAX:
        return DOUBTFUL_OFFSETS
    _store_row(rows, at, (position, magic, shown, offset, timestamp_ms, 1, NO_PRODUCER_ID))
    store_64(rows, at + 8 * 8, NO_PRODUCER_EPOCH)
    return 0


@inlined
def _store_row(rows: Region, at: int, values: tuple[int, int, int, int, int, int, int]) -> None:
    """Store all columns of a row except the flags and the leader epoch."""
    position, magic, base_offset, last_offset, max_timestamp_ms, records_count, producer_id = values
    store_64(rows, at, position)
    store_64(rows, at + 8 * 1, magic)
    store_64(rows, at + 8 * 2, base_offset)
    store_64(rows, at + 8 * 3, last_offset)
    store_64(rows, at + 8 * 4, max_timestamp_ms)
    store_64(rows, at + 8 * 5, records_count)
    store_64(rows, at + 8 * 6, producer_id)


assert [COLUMN[name] for name in ("last_offset", "producer_id", "flags", "leader_epoch")] == [3, 6, 7, 8]
