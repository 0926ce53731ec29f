"""Parameters of the reading kernels, and their state between calls: indexes in two arrays of numbers."""

from __future__ import annotations

from typing import Final

from seglog_format.scan_statistics import FallbackCause

# -- the plan: does not change while a segment is read -----------------------------------------------------------------
LIMIT: Final = 0
"""Maximum bytes that one entry may decompress to."""
FROM_OFFSET, TO_OFFSET, FROM_TIMESTAMP, TO_TIMESTAMP = range(1, 5)
"""Requested rows: offsets from the first inclusive to the second exclusive, timestamps both inclusive."""
FIRST_ALLOWED, LAST_ALLOWED = range(5, 7)
"""Offsets that the segment can hold."""
CHECKSUM_PATH: Final = 7
MAX_ROWS: Final = 8
"""Maximum rows of the block."""
MAX_HEADERS: Final = 9
ENTRIES: Final = 10
"""Position of the notes on entries in the block (`notes`); negative if they are not requested."""
OFFSETS, TIMESTAMPS, TIMESTAMPS_VALID, KEYS, KEYS_VALID, VALUES, VALUES_VALID, HEADER_ENDS = range(11, 19)
"""Position of each column in the block; negative if it is not requested."""
HEADER_KEYS, HEADER_VALUES, HEADER_VALUES_VALID = range(19, 22)
POSITIONS: Final = 22
"""Position in the block of the positions of records (`views.put_position`); negative if they are not requested."""
DECODERS: Final = 23
"""Functions of libraries for decompression (`chunks.Decoders.slots`)."""
PLAN_SIZE: Final = DECODERS + 5

# -- the state ---------------------------------------------------------------------------------------------------------
POSITION: Final = 0
"""Position of the next entry: in the state of every kernel that walks over entries."""
PREVIOUS: Final = 1
"""Last offset of the entry before it."""
ROWS, HEADERS, NOTED = range(2, 5)
"""Number of rows, headers and entries in the block."""
ARENA_USED: Final = 5
ORIGIN: Final = 6
"""Position in the log that views are relative to."""
NEXT_CHUNK, CHUNKS = range(7, 9)
"""Entries that were decompressed ahead: the next one to read, and their number."""
CAUSE: Final = 9
"""Cause for which the entry at the position is left to the fallback decoder, with `FALLBACK`: a number of `CAUSES`."""
NEEDED: Final = 10
"""Rows that an entry needs, with `MORE_ROWS`."""
NULL_TIMESTAMPS, NULL_KEYS, NULL_VALUES, NULL_HEADER_VALUES = range(11, 15)
"""Upper bound of the number of nulls in each column."""
KEY_BYTES, VALUE_BYTES, HEADER_KEY_BYTES, HEADER_VALUE_BYTES = range(15, 23, 2)
"""Bytes that views refer to in the log; the next number is that of bytes in the arena."""
FLOOR: Final = 23
"""Lowest offset that the next entry may deliver: above all delivered offsets (SEG-LKP-003)."""
STATE_SIZE: Final = 24

# -- how a call ends ---------------------------------------------------------------------------------------------------
RANGE_END: Final = 0
"""All requested rows were read."""
FULL: Final = 1
"""The block, the notes or the arena are full."""
FALLBACK: Final = 2
"""The entry at the position is not covered by the fast path."""
DECOMPRESS: Final = 3
"""The entry at the position must be decompressed first."""
MORE_ROWS: Final = 4
MORE_ARENA: Final = 5
MORE_HEADERS: Final = 6
"""The entry at the position does not fit into an empty block."""

OTHER_MAGIC: Final = 7
"""The other kernel reads the entry at the position: that for batches, or that for messages."""

# -- why an entry is left to the fallback decoder ----------------------------------------------------------------------
CAUSE_FRAMING, CAUSE_OFFSETS, CAUSE_CHECKSUM, CAUSE_COMPRESSION, CAUSE_RECORDS = range(5)
CAUSES: Final = (
    FallbackCause.FRAMING,
    FallbackCause.OFFSETS,
    FallbackCause.CHECKSUM,
    FallbackCause.COMPRESSION,
    FallbackCause.RECORDS,
)

CHUNK_FIELDS: Final = 3
"""Of each entry that was decompressed ahead: position in the log, start and end in the arena."""
MAX_CHUNKS: Final = 64
