"""The segmented log format of Apache Kafka, written down so exactly that it runs.

The names below load their modules when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.checks import Finding, verify
    from seglog_format.cleaning.compaction import (
        CompactedSegment,
        CompactionAction,
        CompactionPlan,
        SegmentCompaction,
        plan_compaction,
    )
    from seglog_format.cleaning.compaction_apply import (
        Compacted,
        compact,
        explain_compaction,
        prepare_compaction,
    )
    from seglog_format.cleaning.compaction_rules import BatchFate
    from seglog_format.cleaning.deletion import PreparedRetention, prepare_retention, retain_partition
    from seglog_format.cleaning.retention import (
        RetainedSegment,
        RetentionPlan,
        RetentionReason,
        SegmentFate,
        plan_retention,
    )
    from seglog_format.codec.build import build_batch, new_record
    from seglog_format.codec.control_batch import build_end_marker
    from seglog_format.codec.decode import decode_batch
    from seglog_format.codec.encode import encode_batch
    from seglog_format.codec.framing import walk
    from seglog_format.errors import (
        CorruptIndexError,
        CorruptRecordError,
        FormatError,
        Location,
        MissingOffsetsWarning,
        OffsetOutOfRangeError,
        RefusedError,
        SeglogError,
        TruncatedError,
        UnsupportedVersionError,
        UsageError,
        WriteError,
    )
    from seglog_format.log.directory import LogDirectories, LogDirectory, open_log_directory
    from seglog_format.log.gaps import Gap, GapKind
    from seglog_format.log.partition import Partition, open_partition
    from seglog_format.log.reading import Fetch
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import (
        AbortedTxn,
        MissingOffsets,
        OffsetPosition,
        RecordBatchHeader,
        TimestampOffset,
        TimestampType,
    )
    from seglog_format.record_model import Message, Record, RecordBatch, RecordHeader
    from seglog_format.recovery.apply import (
        PreparedRecovery,
        RecoveryOptions,
        prepare_recovery,
        recover_partition,
    )
    from seglog_format.recovery.plan import RecoveryPlan, plan_for_directory, plan_recovery
    from seglog_format.recovery.segment_scan import Cut
    from seglog_format.recovery.truncation import TruncationPlan, truncate_to
    from seglog_format.requirements import Requirement, requirement
    from seglog_format.state.config import BrokerGeneration, LogConfig
    from seglog_format.state.producer_state import Origin
    from seglog_format.storage.environment import Environment
    from seglog_format.writing.log_writer import LogWriter
    from seglog_format.writing.partition_log import Appended
    from seglog_format.writing.roll import RollReason
    from seglog_format.writing.writer import PartitionWriter

__all__ = [
    "AbortedTxn",
    "Appended",
    "BatchFate",
    "BrokerGeneration",
    "Compacted",
    "CompactedSegment",
    "CompactionAction",
    "CompactionPlan",
    "CorruptIndexError",
    "CorruptRecordError",
    "Cut",
    "Environment",
    "Fetch",
    "Finding",
    "FormatError",
    "Gap",
    "GapKind",
    "Location",
    "LogConfig",
    "LogDirectories",
    "LogDirectory",
    "LogSegment",
    "LogWriter",
    "Message",
    "MissingOffsets",
    "MissingOffsetsWarning",
    "OffsetOutOfRangeError",
    "OffsetPosition",
    "Origin",
    "Partition",
    "PartitionWriter",
    "PreparedRecovery",
    "PreparedRetention",
    "Record",
    "RecordBatch",
    "RecordBatchHeader",
    "RecordHeader",
    "RecoveryOptions",
    "RecoveryPlan",
    "RefusedError",
    "Requirement",
    "RetainedSegment",
    "RetentionPlan",
    "RetentionReason",
    "RollReason",
    "SeglogError",
    "SegmentCompaction",
    "SegmentFate",
    "TimestampOffset",
    "TimestampType",
    "TruncatedError",
    "TruncationPlan",
    "UnsupportedVersionError",
    "UsageError",
    "WriteError",
    "build_batch",
    "build_end_marker",
    "compact",
    "decode_batch",
    "encode_batch",
    "explain_compaction",
    "new_record",
    "open_log_directory",
    "open_partition",
    "plan_compaction",
    "plan_for_directory",
    "plan_recovery",
    "plan_retention",
    "prepare_compaction",
    "prepare_recovery",
    "prepare_retention",
    "recover_partition",
    "requirement",
    "retain_partition",
    "truncate_to",
    "verify",
    "walk",
]

_NAMES: Final = {
    "checks": (
        "Finding",
        "verify",
    ),
    "codec.build": (
        "build_batch",
        "new_record",
    ),
    "codec.control_batch": ("build_end_marker",),
    "codec.decode": ("decode_batch",),
    "codec.encode": ("encode_batch",),
    "codec.framing": ("walk",),
    "errors": (
        "CorruptIndexError",
        "CorruptRecordError",
        "FormatError",
        "Location",
        "MissingOffsetsWarning",
        "OffsetOutOfRangeError",
        "RefusedError",
        "SeglogError",
        "TruncatedError",
        "UnsupportedVersionError",
        "UsageError",
        "WriteError",
    ),
    "cleaning.compaction": (
        "CompactedSegment",
        "CompactionAction",
        "CompactionPlan",
        "SegmentCompaction",
        "plan_compaction",
    ),
    "cleaning.compaction_apply": (
        "Compacted",
        "compact",
        "explain_compaction",
        "prepare_compaction",
    ),
    "cleaning.compaction_rules": ("BatchFate",),
    "state.config": (
        "BrokerGeneration",
        "LogConfig",
    ),
    "cleaning.deletion": (
        "PreparedRetention",
        "prepare_retention",
        "retain_partition",
    ),
    "storage.environment": ("Environment",),
    "writing.log_writer": ("LogWriter",),
    "state.producer_state": ("Origin",),
    "recovery.plan": (
        "RecoveryPlan",
        "plan_for_directory",
        "plan_recovery",
    ),
    "recovery.apply": (
        "PreparedRecovery",
        "RecoveryOptions",
        "prepare_recovery",
        "recover_partition",
    ),
    "cleaning.retention": (
        "RetainedSegment",
        "RetentionPlan",
        "RetentionReason",
        "SegmentFate",
        "plan_retention",
    ),
    "writing.roll": ("RollReason",),
    "recovery.segment_scan": ("Cut",),
    "writing.partition_log": ("Appended",),
    "recovery.truncation": (
        "TruncationPlan",
        "truncate_to",
    ),
    "writing.writer": ("PartitionWriter",),
    "log.directory": (
        "LogDirectories",
        "LogDirectory",
        "open_log_directory",
    ),
    "log.gaps": (
        "Gap",
        "GapKind",
    ),
    "log.partition": (
        "Partition",
        "open_partition",
    ),
    "log.reading": ("Fetch",),
    "log.segment": ("LogSegment",),
    "model": (
        "AbortedTxn",
        "MissingOffsets",
        "OffsetPosition",
        "RecordBatchHeader",
        "TimestampOffset",
        "TimestampType",
    ),
    "record_model": (
        "Message",
        "Record",
        "RecordBatch",
        "RecordHeader",
    ),
    "requirements": (
        "Requirement",
        "requirement",
    ),
}
_MODULES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
