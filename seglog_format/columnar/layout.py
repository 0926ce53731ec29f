"""Positions of the fixed fields of an entry, from the declared layouts, and numbers of the model, for kernels."""

from __future__ import annotations

from typing import Final

from seglog_format import model
from seglog_format.layouts import (
    ENTRY_PREFIX_LAYOUT,
    MESSAGE_V0_HEADER_LAYOUT,
    MESSAGE_V1_HEADER_LAYOUT,
    RECORD_BATCH_HEADER_LAYOUT,
)
from seglog_format.model import CompressionCodec

OFFSET: Final = ENTRY_PREFIX_LAYOUT.position("offset")
SIZE: Final = ENTRY_PREFIX_LAYOUT.position("size")
PREFIX_SIZE: Final = ENTRY_PREFIX_LAYOUT.end("size")
MAGIC: Final = ENTRY_PREFIX_LAYOUT.position("magic")

MESSAGE_CRC: Final = MESSAGE_V1_HEADER_LAYOUT.position("crc")
MESSAGE_ATTRIBUTES: Final = MESSAGE_V1_HEADER_LAYOUT.position("attributes")
MESSAGE_TIMESTAMP: Final = MESSAGE_V1_HEADER_LAYOUT.position("timestamp_ms")

LEADER_EPOCH: Final = RECORD_BATCH_HEADER_LAYOUT.position("partition_leader_epoch")
BATCH_CRC: Final = RECORD_BATCH_HEADER_LAYOUT.position("crc")
BATCH_ATTRIBUTES: Final = RECORD_BATCH_HEADER_LAYOUT.position("attributes")
LAST_OFFSET_DELTA: Final = RECORD_BATCH_HEADER_LAYOUT.position("last_offset_delta")
BASE_TIMESTAMP: Final = RECORD_BATCH_HEADER_LAYOUT.position("base_timestamp_ms")
MAX_TIMESTAMP: Final = RECORD_BATCH_HEADER_LAYOUT.position("max_timestamp_ms")
PRODUCER_ID: Final = RECORD_BATCH_HEADER_LAYOUT.position("producer_id")
PRODUCER_EPOCH: Final = RECORD_BATCH_HEADER_LAYOUT.position("producer_epoch")
BASE_SEQUENCE: Final = RECORD_BATCH_HEADER_LAYOUT.position("base_sequence")
RECORDS_COUNT: Final = RECORD_BATCH_HEADER_LAYOUT.position("records_count")
BATCH_HEADER_SIZE: Final = RECORD_BATCH_HEADER_LAYOUT.size

MESSAGE_V0_HEADER_SIZE: Final = MESSAGE_V0_HEADER_LAYOUT.size
MESSAGE_V1_HEADER_SIZE: Final = MESSAGE_V1_HEADER_LAYOUT.size
LENGTH_SIZE: Final = 4

MIN_SHOWN_SIZE: Final = 18
"""Minimum size of an entry; fewer bytes at the end of a log are ignored (SEG-LOG-002)."""
MIN_ENTRY_SIZE: Final = 14
MIN_MESSAGE_V1_SIZE: Final = 22
MIN_BATCH_LENGTH: Final = BATCH_HEADER_SIZE - PREFIX_SIZE
MIN_RECORD_SIZE: Final = 7
"""Minimum size of a record: seven fields of one byte, which bounds the number of records in a section."""
BATCH_MAGIC: Final = 2

CODEC_MASK: Final = model.CODEC_MASK
LOG_APPEND_TIME: Final = model.TIMESTAMP_TYPE_BIT
TRANSACTIONAL: Final = model.TRANSACTIONAL_BIT
CONTROL: Final = model.CONTROL_BIT

NONE: Final = int(CompressionCodec.NONE)
GZIP: Final = int(CompressionCodec.GZIP)
SNAPPY: Final = int(CompressionCodec.SNAPPY)
LZ4: Final = int(CompressionCodec.LZ4)
ZSTD: Final = int(CompressionCodec.ZSTD)

GREATEST_OFFSET: Final = model.GREATEST_OFFSET
