"""The names of this package that proofs use to compare Kafka's ``LogSegment.recover`` with our recovery.

To recover a partition, call `seglog_format.recover` instead.
"""

from __future__ import annotations

from seglog_format.codec.control_record import EndMarker, end_marker_of
from seglog_format.engine.columnar import RecoveryKernels
from seglog_format.recovery.broker_scan import BrokerScan, Outcome, broker_scan, broker_scan_from
from seglog_format.recovery.entry_walk import indexed_rows, recoverable_frames
from seglog_format.recovery.segment_files import encode_transaction_index, side_files_of
from seglog_format.recovery.segment_scan import SegmentScan, scan_segment
from seglog_format.state.index_build import build_indexes, encode_offset_index, encode_time_index
from seglog_format.state.producer_state import ProducerStates
from seglog_format.storage.byte_source import source_of

__all__ = [
    "BrokerScan",
    "EndMarker",
    "Outcome",
    "ProducerStates",
    "RecoveryKernels",
    "SegmentScan",
    "broker_scan",
    "broker_scan_from",
    "build_indexes",
    "encode_offset_index",
    "encode_time_index",
    "encode_transaction_index",
    "end_marker_of",
    "indexed_rows",
    "recoverable_frames",
    "scan_segment",
    "side_files_of",
    "source_of",
]
