"""The types of what the functions of `seglog_format` return. A name loads its module when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.lazy_names import LazyNames

if TYPE_CHECKING:
    from seglog_format.checks.finding import Finding
    from seglog_format.cleaning.compaction import CompactedSegment, CompactionAction, CompactionPlan, SegmentCompaction
    from seglog_format.cleaning.compaction_apply import Compacted
    from seglog_format.cleaning.compaction_rules import BatchFate
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.cleaning.retention import RetainedSegment, RetentionPlan, RetentionReason, SegmentFate
    from seglog_format.log.directory import LogDirectories, LogDirectory
    from seglog_format.log.gaps import Gap, GapKind
    from seglog_format.log.partition import Partition
    from seglog_format.log.reading import Fetch
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import AbortedTxn, MissingOffsets, OffsetPosition, RecordBatchHeader, TimestampOffset
    from seglog_format.record_model import Message, Record, RecordBatch, RecordHeader
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.plan import RecoveryPlan
    from seglog_format.recovery.segment_scan import Cut
    from seglog_format.recovery.truncation import TruncationPlan
    from seglog_format.requirements import Requirement
    from seglog_format.writing.partition_log import Appended
    from seglog_format.writing.roll import RollReason

__all__ = [
    "AbortedTxn",
    "Appended",
    "BatchFate",
    "Compacted",
    "CompactedSegment",
    "CompactionAction",
    "CompactionPlan",
    "Cut",
    "Fetch",
    "Finding",
    "Gap",
    "GapKind",
    "LogDirectories",
    "LogDirectory",
    "LogSegment",
    "Message",
    "MissingOffsets",
    "OffsetPosition",
    "Partition",
    "PreparedRecovery",
    "PreparedRetention",
    "Record",
    "RecordBatch",
    "RecordBatchHeader",
    "RecordHeader",
    "RecoveryPlan",
    "Requirement",
    "RetainedSegment",
    "RetentionPlan",
    "RetentionReason",
    "RollReason",
    "SegmentCompaction",
    "SegmentFate",
    "TimestampOffset",
    "TruncationPlan",
]

_LAZY: Final = LazyNames(
    __name__,
    {
        "checks.finding": ("Finding",),
        "cleaning.compaction": ("CompactedSegment", "CompactionAction", "CompactionPlan", "SegmentCompaction"),
        "cleaning.compaction_apply": ("Compacted",),
        "cleaning.compaction_rules": ("BatchFate",),
        "cleaning.deletion": ("PreparedRetention",),
        "cleaning.retention": ("RetainedSegment", "RetentionPlan", "RetentionReason", "SegmentFate"),
        "log.directory": ("LogDirectories", "LogDirectory"),
        "log.gaps": ("Gap", "GapKind"),
        "log.partition": ("Partition",),
        "log.reading": ("Fetch",),
        "log.segment": ("LogSegment",),
        "model": ("AbortedTxn", "MissingOffsets", "OffsetPosition", "RecordBatchHeader", "TimestampOffset"),
        "record_model": ("Message", "Record", "RecordBatch", "RecordHeader"),
        "recovery.apply": ("PreparedRecovery",),
        "recovery.plan": ("RecoveryPlan",),
        "recovery.segment_scan": ("Cut",),
        "recovery.truncation": ("TruncationPlan",),
        "requirements": ("Requirement",),
        "writing.partition_log": ("Appended",),
        "writing.roll": ("RollReason",),
    },
)


def __getattr__(name: str) -> object:
    value = globals()[name] = _LAZY.load(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
