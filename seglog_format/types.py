"""The types that users of `seglog_format` annotate, compare with, make or implement.

What the attributes of a result are made of is documented on the same page of the reference, and needs no import. A name
loads its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.lazy_names import LazyNames

if TYPE_CHECKING:
    from seglog_format.checks.finding import Extent, Finding
    from seglog_format.cleaning.compaction import CompactionPlan
    from seglog_format.cleaning.compaction_apply import PreparedCompaction
    from seglog_format.cleaning.compaction_rules import BatchFate
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.cleaning.retention import RetentionPlan, RetentionReason
    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.image import MetadataImage
    from seglog_format.cluster.metadata_log import MetadataLog, MetadataRecord, MetadataState
    from seglog_format.cluster.resurrection import PreparedResurrection
    from seglog_format.codec.framing import FrameWalk
    from seglog_format.generation.anonymise import Anonymised
    from seglog_format.generation.generate import GeneratedLog
    from seglog_format.log.directory import LogDirectories, LogDirectory
    from seglog_format.log.gaps import Gap, GapKind
    from seglog_format.log.index_file import IndexedOffset, OffsetIndex, TimeIndex, TransactionIndex
    from seglog_format.log.partition import Partition
    from seglog_format.log.reading import Fetch
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.model import (
        AbortedTxn,
        EpochStart,
        Frame,
        Message,
        OffsetPosition,
        Record,
        RecordBatch,
        RecordBatchHeader,
        RecordHeader,
        TailKind,
        TimestampOffset,
    )
    from seglog_format.names import FileKind, ObjectKind
    from seglog_format.plans import PreparedIndexes, PreparedSalvage
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.plan import LossReason, RecoveryPlan
    from seglog_format.recovery.truncation import PreparedTruncation, TruncationPlan
    from seglog_format.requirements import Requirement
    from seglog_format.scan_statistics import FallbackCause, ScanStatistics
    from seglog_format.state.config import IndexUnit, TimeIndexOffset
    from seglog_format.storage.byte_source import ByteSource, SourceFile, Window
    from seglog_format.storage.files import FileHandle, Files
    from seglog_format.tables.progress import Change, ChangeKind
    from seglog_format.tier.chunked_bytes import ChunkCache
    from seglog_format.tier.layout import (
        KeyRing,
        LogFile,
        ObjectReader,
        OpenedSegment,
        SmallFile,
        StoredObject,
        TierLayout,
    )
    from seglog_format.tier.layouts import LocalTierLayout
    from seglog_format.tier.local_metadata import LocalMetadataTopic
    from seglog_format.tier.remote_store import RemoteTier
    from seglog_format.tier.segments import RemotePartitionId, RemoteSegmentId
    from seglog_format.values.decoder import Decoder
    from seglog_format.values.schemas import Schemas
    from seglog_format.writing.append import RollReason
    from seglog_format.writing.partition_log import Appended

__all__ = [
    "AbortedTxn",
    "Anonymised",
    "Appended",
    "BatchFate",
    "ByteSource",
    "Change",
    "ChangeKind",
    "ChunkCache",
    "Cluster",
    "CompactionPlan",
    "Decoder",
    "EpochStart",
    "Extent",
    "FallbackCause",
    "Fetch",
    "FileHandle",
    "FileKind",
    "Files",
    "Finding",
    "Frame",
    "FrameWalk",
    "Gap",
    "GapKind",
    "GeneratedLog",
    "IndexSettings",
    "IndexUnit",
    "IndexedOffset",
    "KeyRing",
    "LocalMetadataTopic",
    "LocalTierLayout",
    "LogDirectories",
    "LogDirectory",
    "LogFile",
    "LogSegment",
    "LossReason",
    "Message",
    "MetadataImage",
    "MetadataLog",
    "MetadataRecord",
    "MetadataState",
    "ObjectKind",
    "ObjectReader",
    "OffsetIndex",
    "OffsetPosition",
    "OpenedSegment",
    "Partition",
    "PreparedCompaction",
    "PreparedIndexes",
    "PreparedRecovery",
    "PreparedResurrection",
    "PreparedRetention",
    "PreparedSalvage",
    "PreparedTruncation",
    "Record",
    "RecordBatch",
    "RecordBatchHeader",
    "RecordHeader",
    "RecoveryPlan",
    "RemotePartitionId",
    "RemoteSegmentId",
    "RemoteStore",
    "RemoteTier",
    "Requirement",
    "RetentionPlan",
    "RetentionReason",
    "RollReason",
    "ScanStatistics",
    "Schemas",
    "SmallFile",
    "SourceFile",
    "StoredObject",
    "TailKind",
    "TierLayout",
    "TimeIndex",
    "TimeIndexOffset",
    "TimestampOffset",
    "TransactionIndex",
    "Transactions",
    "TruncationPlan",
    "Window",
]

_LAZY: Final = LazyNames(
    __name__,
    {
        "checks.finding": ("Extent", "Finding"),
        "cleaning.compaction": ("CompactionPlan",),
        "cleaning.compaction_apply": ("PreparedCompaction",),
        "cleaning.compaction_rules": ("BatchFate",),
        "cleaning.deletion": ("PreparedRetention",),
        "cleaning.retention": ("RetentionPlan", "RetentionReason"),
        "cluster.cluster": ("Cluster",),
        "cluster.image": ("MetadataImage",),
        "cluster.metadata_log": ("MetadataLog", "MetadataRecord", "MetadataState"),
        "cluster.resurrection": ("PreparedResurrection",),
        "codec.framing": ("FrameWalk",),
        "generation.anonymise": ("Anonymised",),
        "generation.generate": ("GeneratedLog",),
        "log.directory": ("LogDirectories", "LogDirectory"),
        "log.gaps": ("Gap", "GapKind"),
        "log.index_file": ("IndexedOffset", "OffsetIndex", "TimeIndex", "TransactionIndex"),
        "log.partition": ("Partition",),
        "log.reading": ("Fetch",),
        "log.remote_store": ("RemoteStore",),
        "log.segment": ("LogSegment",),
        "log.transactions": ("Transactions",),
        "model": (
            "AbortedTxn",
            "EpochStart",
            "Frame",
            "Message",
            "OffsetPosition",
            "Record",
            "RecordBatch",
            "RecordBatchHeader",
            "RecordHeader",
            "TailKind",
            "TimestampOffset",
        ),
        "names": ("FileKind", "ObjectKind"),
        "plans": ("PreparedIndexes", "PreparedSalvage"),
        "recovery.apply": ("PreparedRecovery",),
        "recovery.index_settings": ("IndexSettings",),
        "recovery.plan": ("LossReason", "RecoveryPlan"),
        "recovery.truncation": ("PreparedTruncation", "TruncationPlan"),
        "requirements": ("Requirement",),
        "scan_statistics": ("FallbackCause", "ScanStatistics"),
        "state.config": ("IndexUnit", "TimeIndexOffset"),
        "storage.byte_source": ("ByteSource", "SourceFile", "Window"),
        "storage.files": ("FileHandle", "Files"),
        "tables.progress": ("Change", "ChangeKind"),
        "tier.chunked_bytes": ("ChunkCache",),
        "tier.layout": (
            "KeyRing",
            "LogFile",
            "ObjectReader",
            "OpenedSegment",
            "SmallFile",
            "StoredObject",
            "TierLayout",
        ),
        "tier.layouts": ("LocalTierLayout",),
        "tier.local_metadata": ("LocalMetadataTopic",),
        "tier.remote_store": ("RemoteTier",),
        "tier.segments": ("RemotePartitionId", "RemoteSegmentId"),
        "values.decoder": ("Decoder",),
        "values.schemas": ("Schemas",),
        "writing.append": ("RollReason",),
        "writing.partition_log": ("Appended",),
    },
)


def __getattr__(name: str) -> object:
    value = globals()[name] = _LAZY.load(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
