"""The fixed layouts, in stored order. Made by ``python -m tools.make_layouts`` from the declarations."""

from __future__ import annotations

from typing import Final

from seglog_format.packing import FixedLayout

ENTRY_PREFIX_LAYOUT: Final = FixedLayout(offset="q", size="l", crc_or_epoch="l", magic="b")
RECORD_BATCH_HEADER_LAYOUT: Final = FixedLayout(
    base_offset="q",
    batch_length="l",
    partition_leader_epoch="l",
    magic="b",
    crc="L",
    attributes="h",
    last_offset_delta="l",
    base_timestamp_ms="q",
    max_timestamp_ms="q",
    producer_id="q",
    producer_epoch="h",
    base_sequence="l",
    records_count="l",
)
MESSAGE_V0_HEADER_LAYOUT: Final = FixedLayout(offset="q", message_size="l", crc="L", magic="b", attributes="b")
MESSAGE_V1_HEADER_LAYOUT: Final = FixedLayout(
    offset="q", message_size="l", crc="L", magic="b", attributes="b", timestamp_ms="q"
)
BYTES_LENGTH_LAYOUT: Final = FixedLayout(length="l")
CONTROL_RECORD_KEY_LAYOUT: Final = FixedLayout(version="h", type="h")
END_TRANSACTION_MARKER_LAYOUT: Final = FixedLayout(version="h", coordinatorEpoch="l")
OFFSET_INDEX_ENTRY_LAYOUT: Final = FixedLayout(relative_offset="l", position="l")
TIME_INDEX_ENTRY_LAYOUT: Final = FixedLayout(timestamp_ms="q", relative_offset="l")
TRANSACTION_INDEX_ENTRY_LAYOUT: Final = FixedLayout(
    version="h", producer_id="q", first_offset="q", last_offset="q", last_stable_offset="q"
)
PRODUCER_SNAPSHOT_HEADER_LAYOUT: Final = FixedLayout(version="h", crc="L", count="l")
PRODUCER_STATE_ENTRY_LAYOUT: Final = FixedLayout(
    producer_id="q",
    producer_epoch="h",
    last_sequence="l",
    last_offset="q",
    offset_delta="l",
    timestamp_ms="q",
    coordinator_epoch="l",
    current_txn_first_offset="q",
)
