"""The kernel that clears entries: from one to the next, as long as no check has anything to say (chapters 20 to 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.clear_messages import clear_wrapped, ends_with_value, has_known_bits, value_of
from seglog_format.columnar.clear_records import ABORT, clear_records, marker_type
from seglog_format.columnar.compiled import helper, inlined, kernel
from seglog_format.columnar.entries import batch_is_valid, entry_size, message_is_valid
from seglog_format.columnar.layout import (
    BASE_SEQUENCE,
    BASE_TIMESTAMP,
    BATCH_ATTRIBUTES,
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    CODEC_MASK,
    CONTROL,
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
from seglog_format.columnar.memory import load_be16, load_be32, load_be64, load_le32, load_le64, load_u8, region, store_64
from seglog_format.columnar.messages import message_timestamp
from seglog_format.columnar.plan import CHECKSUM_PATH, EXPAND, FIRST_ALLOWED, FULL, JUDGE, POSITION, PREVIOUS, ROWS
from seglog_format.columnar.sections import section_of
from seglog_format.columnar.snappy import BLOCK_HEADER_SIZE as SNAPPY_BLOCK_HEADER_SIZE
from seglog_format.columnar.snappy import HEADER_SIZE as XERIAL_HEADER_SIZE
from seglog_format.columnar.snappy import XERIAL_MAGIC

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table

COLUMNS: Final = (
    "position",
    "magic",
    "base_offset",
    "last_offset",
    "max_timestamp_ms",
    "records_count",
    "flags",
    "producer_id",
)
"""Of the table of cleared entries. The base offset of a wrapper is `WRAPPER`; a message has one record."""
COLUMN: Final = {name: number for number, name in enumerate(COLUMNS)}
ROW_SIZE: Final = 8 * len(COLUMNS)

WRAPPER: Final = -1
HEADER: Final = 1
"""Flag: the records are cleared, the header has to be looked at."""
MARKS_ABORT: Final = 2
"""Flag: an end marker that aborts, or a control batch that compaction has emptied."""

DOUBTFUL: Final = -1
COMPRESSED: Final = -2
"""Instead of flags: the entry has to be decompressed first."""

STORED_START, STORED_END, STORED_CODEC, STORED_MAGIC = range(4)
"""What is told of an entry that has to be decompressed."""

LARGEST_SPAN: Final = 2**31 - 1
UNKNOWN_BITS: Final = 0xFF80
NO_PRODUCER: Final = -1


@kernel
def clear_entries(
    log: Bytes, arena: Bytes, sections: Numbers, plan: Numbers, state: Numbers, table: Table, stored: Numbers
) -> int:
    """Clear entries until the table is full, or one is not beyond doubt, or has to be decompressed.

    Args:
        log: bytes of a log.
        arena: what was decompressed ahead.
        sections: what was decompressed ahead, by position.
        plan: limit of decompression, base offset of the segment, and the path of computing checksums.
        state: the position of the next entry, and the last offset of the one before; afterwards also how many rows.
        table: a row for each entry that was cleared.
        stored: afterwards, where the compressed bytes of an entry stand that has to be decompressed.

    Returns:
        `FULL`, `JUDGE` or `EXPAND`, as in `plan`.
    """
    data, arena_, rows = region(log), region(arena), region(table.reshape(-1))
    sections_, path, lowest = region(sections.view(np.uint8)), plan[CHECKSUM_PATH], plan[FIRST_ALLOWED]
    position, previous, row, answer = state[POSITION], state[PREVIOUS], 0, FULL
    while row < len(table):
        size = entry_size(data, position, len(log)) if position >= 0 else -1
        if size < 0:
            answer = JUDGE
            break
        at = row * ROW_SIZE
        start, end = _stored(data, position, size)
        source = data
        if start < 0:
            answer = JUDGE
            break
        if _is_compressed(data, position, start, end):
            stored[STORED_START], stored[STORED_END] = start, end
            start, end = section_of(sections_, state, position)
            source = arena_
            if start < 0:
                stored[STORED_CODEC], stored[STORED_MAGIC] = _codec(data, position), load_u8(data, position + MAGIC)
                answer = EXPAND
                break
        if load_u8(data, position + MAGIC) == BATCH_MAGIC:
            is_clear = _clear_batch(path, data, position, size, source, start, end, previous, lowest, rows, at)
        else:
            is_clear = _clear_message(path, data, position, size, source, start, end, previous, lowest, rows, at)
        if not is_clear:
            answer = JUDGE
            break
        previous = table[row, 3]
        position, row = position + size, row + 1
    state[POSITION], state[PREVIOUS], state[ROWS] = position, previous, row
    return answer
