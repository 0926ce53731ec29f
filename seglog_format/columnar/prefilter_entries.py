"""The prefilter kernel: skips entries as long as no check can report a finding (chapters 20 to 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.chunks import chunk_of
from seglog_format.columnar.compiled import helper, inlined, kernel
from seglog_format.columnar.entries import entry_is_valid, entry_size
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
    MAGIC,
    MAX_TIMESTAMP,
    MESSAGE_ATTRIBUTES,
    MIN_RECORD_SIZE,
    NONE,
    OFFSET,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS_COUNT,
    TRANSACTIONAL,
    ZSTD,
)
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_u8, region, store_64
from seglog_format.columnar.messages import message_timestamp
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
from seglog_format.columnar.prefilter_frames import is_all_used
from seglog_format.columnar.prefilter_messages import ends_with_value, has_known_bits, prefilter_wrapped, value_of
from seglog_format.columnar.prefilter_records import ABORT, end_marker, prefilter_records
from seglog_format.model import INT32_MAX, NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table

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
