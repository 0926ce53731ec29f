"""The kernel that reads batches of magic 2: verifies checksums, decodes records, and stores rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.chunks import chunk_of, decompress_next
from seglog_format.columnar.compiled import inlined, kernel
from seglog_format.columnar.entries import UNKNOWN_OFFSET, batch_is_valid, entry_offsets, entry_size, message_is_valid
from seglog_format.columnar.layout import (
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    CONTROL,
    GREATEST_OFFSET,
    LOG_APPEND_TIME,
    MAGIC,
    MAX_TIMESTAMP,
    MESSAGE_ATTRIBUTES,
    MIN_RECORD_SIZE,
    NONE,
    PRODUCER_ID,
    RECORDS_COUNT,
    TRANSACTIONAL,
    ZSTD,
)
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_u8, region
from seglog_format.columnar.messages import OVERLAPS, decode_message, decode_wrapped, message_timestamp, survey
from seglog_format.columnar.notes import declined, note_entry
from seglog_format.columnar.plan import (
    ARENA_USED,
    CAUSE_CHECKSUM,
    CAUSE_COMPRESSION,
    CAUSE_FRAMING,
    CAUSE_OFFSETS,
    CAUSE_RECORDS,
    CHECKSUM_PATH,
    FIRST_ALLOWED,
    FLOOR,
    FROM_OFFSET,
    FROM_TIMESTAMP,
    FULL,
    LAST_ALLOWED,
    MAX_ROWS,
    MORE_HEADERS,
    MORE_ROWS,
    NEEDED,
    ORIGIN,
    OTHER_MAGIC,
    POSITION,
    PREVIOUS,
    RANGE_END,
    ROWS,
    TO_OFFSET,
)
from seglog_format.columnar.records import NO_ROOM, decode_records, has_control_keys
from seglog_format.columnar.transactions import is_aborted

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region


MAX_SLICE: Final = 2**30
"""Maximum bytes of the log that one block refers to; positions in views are 32-bit numbers."""


@kernel
def read_batches(  # noqa: C901, PLR0911, PLR0912 - each way out is another answer
    log: Bytes,
    arena: Bytes,
    block: Bytes,
    header_block: Bytes,
    aborted: Numbers,
    chunks: Numbers,
    plan: Numbers,
    state: Numbers,
) -> int:
    """Read batches into rows until there is a reason to stop; return the reason (see `plan`).

    Args:
        log: bytes of a log, or of its start.
        arena: decompressed bytes.
        block: receives rows.
        header_block: receives headers.
        aborted: transactions to leave out, from `transactions.aborted_numbers`.
        chunks: entries that were decompressed ahead, by position.
        plan: parameters of the read.
        state: start of the read; afterwards the start of the next call.
    """
    data, plan_, state_ = region(log), region(plan), region(state)
    arena_, block_, headers_ = region(arena), region(block), region(header_block)
    aborted_, sections_ = region(aborted), region(chunks)
    end, to_offset, max_rows = len(log), plan[TO_OFFSET], plan[MAX_ROWS]
    if state[POSITION] < 0:
        return declined(state_, CAUSE_FRAMING)
    while True:
        position = state[POSITION]
        size = entry_size(data, position, end)
        if size < 0:
            return declined(state_, CAUSE_FRAMING)
        if load_u8(data, position + MAGIC) != BATCH_MAGIC:
            return OTHER_MAGIC
        first, last = entry_offsets(data, position)
        if first <= state[PREVIOUS] or last < first or last > plan[LAST_ALLOWED] or first < plan[FIRST_ALLOWED]:
            return declined(state_, CAUSE_OFFSETS)
        if first >= to_offset:
            return RANGE_END
        if last < plan[FROM_OFFSET]:
            state[POSITION], state[PREVIOUS] = position + size, last
            continue
        rows = state[ROWS]
        if rows == 0:
            state[ORIGIN] = position
        count = load_be32(data, position + RECORDS_COUNT)
        if rows > 0 and (count > max_rows - rows or position + size - state[ORIGIN] > MAX_SLICE):
            return FULL
        attributes = load_be16(data, position + BATCH_ATTRIBUTES)
        source, buffer, start, stop = data, 0, position + BATCH_HEADER_SIZE, position + size
        if attributes & CODEC_MASK != NONE and (count != 0 or start != stop):
            start, stop = chunk_of(sections_, state, position)
            if start < 0:
                ended = decompress_next(data, arena, plan, state, chunks)
                if ended:
                    return ended
                continue
            source, buffer = arena_, 1
        if count < 0 or count > (stop - start) // MIN_RECORD_SIZE:
            return declined(state_, CAUSE_RECORDS)
        if not batch_is_valid(plan[CHECKSUM_PATH], data, position, size):
            return declined(state_, CAUSE_CHECKSUM)
        if count > max_rows:
            state[NEEDED] = count
            return MORE_ROWS
        newest = load_be64(data, position + MAX_TIMESTAMP)
        if newest >= plan[FROM_TIMESTAMP]:
            times = (load_be64(data, position + BASE_TIMESTAMP), newest, attributes & LOG_APPEND_TIME != 0)
            highest = 0 if _is_left_out(data, position, attributes, last, aborted_) else to_offset
            offsets = (first, state[FLOOR], highest)
            answer = decode_records(
                source, (start, stop), buffer, times, offsets, count, plan_, state_, block_, headers_
            )
            if answer == NO_ROOM:
                return FULL if rows > 0 else MORE_HEADERS
            if answer != 0 or (attributes & CONTROL and not has_control_keys(source, start, stop, count)):
                return declined(state_, CAUSE_RECORDS)
            note_entry(plan_, state_, block_, position, rows)
        if buffer:
            state[ARENA_USED] = max(stop, state[ARENA_USED])
        state[POSITION], state[PREVIOUS], state[FLOOR] = position + size, last, last + 1
        if last + 1 >= to_offset and to_offset <= GREATEST_OFFSET:
            return RANGE_END


@inlined
def _is_left_out(data: Region, position: int, attributes: int, last: int, aborted: Region) -> bool:
    """Return whether a reader skips a batch: control records (SEG-CTL-009), and aborted ones (SEG-LKP-011)."""
    if attributes & CONTROL:
        return True
    return attributes & TRANSACTIONAL != 0 and is_aborted(aborted, load_be64(data, position + PRODUCER_ID), last)


# -- the kernel that reads messages of magic 0 and 1: from entry to entry, checksum, wrappers, rows --------------------


@kernel
def read_messages(  # noqa: C901, PLR0911, PLR0912 - each way out is another answer
    log: Bytes,
    arena: Bytes,
    block: Bytes,
    header_block: Bytes,  # noqa: ARG001 - both kernels are called alike
    aborted: Numbers,  # noqa: ARG001 - messages have no transactions
    chunks: Numbers,
    plan: Numbers,
    state: Numbers,
) -> int:
    """Read messages into rows until there is a reason to stop; arguments and result as `reader.read_batches`."""
    data, plan_, state_ = region(log), region(plan), region(state)
    arena_, block_, sections_ = region(arena), region(block), region(chunks)
    end, to_offset, max_rows = len(log), plan[TO_OFFSET], plan[MAX_ROWS]
    if state[POSITION] < 0:
        return declined(state_, CAUSE_FRAMING)
    while True:
        position = state[POSITION]
        size = entry_size(data, position, end)
        if size < 0:
            return declined(state_, CAUSE_FRAMING)
        magic = load_u8(data, position + MAGIC)
        if magic == BATCH_MAGIC:
            return OTHER_MAGIC
        first, last = entry_offsets(data, position)
        if last <= state[PREVIOUS] or last > plan[LAST_ALLOWED]:
            return declined(state_, CAUSE_OFFSETS)
        if first != UNKNOWN_OFFSET and first < plan[FIRST_ALLOWED]:
            return declined(state_, CAUSE_OFFSETS)
        if first >= to_offset:
            return RANGE_END
        if last < plan[FROM_OFFSET]:
            state[POSITION], state[PREVIOUS] = position + size, last
            continue
        rows = state[ROWS]
        if rows == 0:
            state[ORIGIN] = position
        if rows > 0 and (rows == max_rows or position + size - state[ORIGIN] > MAX_SLICE):
            return FULL
        attributes = load_u8(data, position + MESSAGE_ATTRIBUTES)
        timestamp_ms, bounds = message_timestamp(data, position), (state[FLOOR], to_offset)
        if attributes & CODEC_MASK == NONE:
            if not message_is_valid(plan[CHECKSUM_PATH], data, position, size):
                return declined(state_, CAUSE_CHECKSUM)
            if decode_message(data, position, size, (last, timestamp_ms), bounds, 0, plan_, state_, block_):
                return declined(state_, CAUSE_RECORDS)
        else:
            if attributes & CODEC_MASK == ZSTD or last < 0:
                return declined(state_, CAUSE_COMPRESSION)
            start, stop = chunk_of(sections_, state, position)
            if start < 0:
                ended = decompress_next(data, arena, plan, state, chunks)
                if ended:
                    return ended
                continue
            count, last_inside = survey(plan[CHECKSUM_PATH], arena_, start, stop)
            if not message_is_valid(plan[CHECKSUM_PATH], data, position, size):
                return declined(state_, CAUSE_CHECKSUM)
            if count <= 0:
                return declined(state_, CAUSE_RECORDS)
            if count > max_rows - rows:
                state[NEEDED] = count
                return FULL if rows > 0 else MORE_ROWS
            wrapper = (last, magic, attributes, timestamp_ms)
            answer = decode_wrapped(arena_, (start, stop), wrapper, last_inside, bounds, plan_, state_, block_)
            if answer:
                return declined(state_, CAUSE_OFFSETS if answer == OVERLAPS else CAUSE_RECORDS)
            state[ARENA_USED] = max(stop, state[ARENA_USED])
        note_entry(plan_, state_, block_, position, rows)
        state[POSITION], state[PREVIOUS], state[FLOOR] = position + size, last, last + 1
        if last + 1 >= to_offset and to_offset <= GREATEST_OFFSET:
            return RANGE_END
