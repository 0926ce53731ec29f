"""Where the fixed fields of an entry stand; the tests hold these numbers against the schema (chapters 20, 30, 33)."""

from __future__ import annotations

from typing import Final

OFFSET: Final = 0
SIZE: Final = 8
PREFIX_SIZE: Final = 12
LEADER_EPOCH: Final = 12
MESSAGE_CRC: Final = 12
MAGIC: Final = 16
MESSAGE_ATTRIBUTES: Final = 17
MESSAGE_TIMESTAMP: Final = 18

BATCH_CRC: Final = 17
BATCH_ATTRIBUTES: Final = 21
LAST_OFFSET_DELTA: Final = 23
BASE_TIMESTAMP: Final = 27
MAX_TIMESTAMP: Final = 35
PRODUCER_ID: Final = 43
PRODUCER_EPOCH: Final = 51
BASE_SEQUENCE: Final = 53
RECORDS_COUNT: Final = 57
BATCH_HEADER_SIZE: Final = 61

MESSAGE_V0_HEADER_SIZE: Final = 18
MESSAGE_V1_HEADER_SIZE: Final = 26
LENGTH_SIZE: Final = 4

MIN_SHOWN_SIZE: Final = 18
"""Fewer bytes at the end of a log are never an entry (SEG-LOG-002)."""
MIN_ENTRY_SIZE: Final = 14
MIN_MESSAGE_V1_SIZE: Final = 22
MIN_BATCH_LENGTH: Final = BATCH_HEADER_SIZE - PREFIX_SIZE
MIN_RECORD_SIZE: Final = 7
"""Seven fields of one byte each: so many records at most can be in a section."""
BATCH_MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

LONGEST_NUMBER: Final = 2**63 - 1
