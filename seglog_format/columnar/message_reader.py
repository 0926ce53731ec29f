"""The kernel that reads messages of magic 0 and 1: from entry to entry, checksum, wrappers, rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.columnar.chunks import chunk_of, decompress_next
from seglog_format.columnar.compiled import kernel
from seglog_format.columnar.entries import UNKNOWN_OFFSET, entry_offsets, entry_size, message_is_valid
from seglog_format.columnar.layout import (
    BATCH_MAGIC,
    CODEC_MASK,
    GREATEST_OFFSET,
    MAGIC,
    MESSAGE_ATTRIBUTES,
    NONE,
    ZSTD,
)
from seglog_format.columnar.memory import load_u8, region
from seglog_format.columnar.messages import decode_message, decode_wrapped, message_timestamp, survey
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
    FULL,
    LAST_ALLOWED,
    MAX_ROWS,
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
from seglog_format.columnar.reader import MAX_SLICE

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers


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
            if decode_wrapped(arena_, (start, stop), wrapper, last_inside, bounds, plan_, state_, block_):
                return declined(state_, CAUSE_RECORDS)
            state[ARENA_USED] = max(stop, state[ARENA_USED])
        note_entry(plan_, state_, block_, position, rows)
        state[POSITION], state[PREVIOUS], state[FLOOR] = position + size, last, last + 1
        if last + 1 >= to_offset and to_offset <= GREATEST_OFFSET:
            return RANGE_END
