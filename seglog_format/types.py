"""The types that functions of `seglog_format` take and return. A name loads its module when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.lazy_names import LazyNames

if TYPE_CHECKING:
    from seglog_format.checks.finding import Extent, Finding
    from seglog_format.cleaning.compaction import CompactedSegment, CompactionAction, CompactionPlan, SegmentCompaction
    from seglog_format.cleaning.compaction_apply import Compacted, PreparedCompaction
    from seglog_format.cleaning.compaction_rules import BatchAction, BatchFate, RecordFate, RecordReason
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.cleaning.retention import RetainedSegment, RetentionPlan, RetentionReason, SegmentFate
    from seglog_format.cluster.cluster import Cluster, CommittedOffset, CoordinatorState, Group
    from seglog_format.cluster.comparison import Election, Replica, Standing
    from seglog_format.cluster.image import ConfigResource, ImageRecord, MetadataImage, QuotaEntity, Release, TopicImage
    from seglog_format.cluster.metadata_log import MetadataLog, MetadataRecord, MetadataState
    from seglog_format.cluster.new_image import NewImage, NewNode, Note
    from seglog_format.cluster.resurrection import PreparedResurrection
    from seglog_format.codec.framing import FrameWalk
    from seglog_format.engine import Choice
    from seglog_format.generation.anonymise import Anonymised, NotUnderstood
    from seglog_format.generation.generate import GeneratedLog, GeneratedPartition
    from seglog_format.log.directory import LogDirectories, LogDirectory
    from seglog_format.log.entry_table import EntryTable
    from seglog_format.log.gaps import Gap, GapKind
    from seglog_format.log.index_file import (
        IndexedOffset,
        OffsetIndex,
        TimeIndex,
        TransactionIndex,
        TxnIndexSearchResult,
    )
    from seglog_format.log.listing import NamedFile, PartitionEntry, PartitionListing, SegmentFiles
    from seglog_format.log.partition import Partition
    from seglog_format.log.reading import Fetch
    from seglog_format.log.remote_store import KnowsTiered, RemoteCopies, RemoteOffsets, RemoteStore
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.model import (
        AbortedTxn,
        EpochStart,
        Frame,
        Message,
        MetaProperties,
        MissingOffsets,
        OffsetPosition,
        Record,
        RecordBatch,
        RecordBatchHeader,
        RecordHeader,
        Tail,
        TailKind,
        TimestampOffset,
    )
    from seglog_format.names import FileKind, FileName, ObjectKind, PartitionDirectoryName
    from seglog_format.plans import PreparedIndexes, PreparedSalvage
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.index_rebuild import RebuiltIndex, RebuiltSegment
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.plan import Circumstances, Losses, LossReason, LostOffsets, RecoveryPlan
    from seglog_format.recovery.salvage_placement import SalvagedSegment
    from seglog_format.recovery.salvage_scan import DamagedRange
    from seglog_format.recovery.segment_scan import Cut, Part, Remark, Split
    from seglog_format.recovery.truncation import PreparedTruncation, TruncationPlan
    from seglog_format.requirements import BrokerMark, Requirement
    from seglog_format.scan_statistics import FallbackCause, ScanStatistics
    from seglog_format.state.config import IndexUnit, TimeIndexOffset
    from seglog_format.state.root_files import CheckpointedState
    from seglog_format.storage.byte_source import ByteSource, SourceFile, Window
    from seglog_format.storage.environment import Condition
    from seglog_format.storage.files import FileHandle, Files, FileStep
    from seglog_format.storage.log_storage import DirectoryEntries, FileStatus, LogStorage, SkippedEntry
    from seglog_format.storage.object_store import Traffic
    from seglog_format.tables.progress import Change, ChangeKind, ExportedPartition, OpenTransaction
    from seglog_format.tier.audit import AuditExtent, TierExtent
    from seglog_format.tier.chunked_bytes import ChunkCache
    from seglog_format.tier.layout import (
        KeyRing,
        LogFile,
        ObjectReader,
        OpenedSegment,
        SegmentFacts,
        SmallFile,
        StoredObject,
        StoredSegment,
        TierLayout,
    )
    from seglog_format.tier.layouts import LocalTierLayout
    from seglog_format.tier.local_metadata import LocalMetadataTopic
    from seglog_format.tier.remote_store import RemoteTier
    from seglog_format.tier.segments import RemotePartitionId, RemoteSegmentId
    from seglog_format.values.decoder import Decoder
    from seglog_format.values.schemas import Schemas, SchemaText
    from seglog_format.writing.append import RollReason
    from seglog_format.writing.partition_log import Appended

__all__ = [
    "AbortedTxn",
    "Anonymised",
    "Appended",
    "AuditExtent",
    "BatchAction",
    "BatchFate",
    "BrokerMark",
    "ByteSource",
    "Change",
    "ChangeKind",
    "CheckpointedState",
    "Choice",
    "ChunkCache",
    "Circumstances",
    "Cluster",
    "CommittedOffset",
    "Compacted",
    "CompactedSegment",
    "CompactionAction",
    "CompactionPlan",
    "Condition",
    "ConfigResource",
    "CoordinatorState",
    "Cut",
    "DamagedRange",
    "Decoder",
    "DirectoryEntries",
    "Election",
    "EntryTable",
    "EpochStart",
    "ExportedPartition",
    "Extent",
    "FallbackCause",
    "Fetch",
    "FileHandle",
    "FileKind",
    "FileName",
    "FileStatus",
    "FileStep",
    "Files",
    "Finding",
    "Frame",
    "FrameWalk",
    "Gap",
    "GapKind",
    "GeneratedLog",
    "GeneratedPartition",
    "Group",
    "ImageRecord",
    "IndexSettings",
    "IndexUnit",
    "IndexedOffset",
    "KeyRing",
    "KnowsTiered",
    "LocalMetadataTopic",
    "LocalTierLayout",
    "LogDirectories",
    "LogDirectory",
    "LogFile",
    "LogSegment",
    "LogStorage",
    "LossReason",
    "Losses",
    "LostOffsets",
    "Message",
    "MetaProperties",
    "MetadataImage",
    "MetadataLog",
    "MetadataRecord",
    "MetadataState",
    "MissingOffsets",
    "NamedFile",
    "NewImage",
    "NewNode",
    "NotUnderstood",
    "Note",
    "ObjectKind",
    "ObjectReader",
    "OffsetIndex",
    "OffsetPosition",
    "OpenTransaction",
    "OpenedSegment",
    "Part",
    "Partition",
    "PartitionDirectoryName",
    "PartitionEntry",
    "PartitionListing",
    "PreparedCompaction",
    "PreparedIndexes",
    "PreparedRecovery",
    "PreparedResurrection",
    "PreparedRetention",
    "PreparedSalvage",
    "PreparedTruncation",
    "QuotaEntity",
    "RebuiltIndex",
    "RebuiltSegment",
    "Record",
    "RecordBatch",
    "RecordBatchHeader",
    "RecordFate",
    "RecordHeader",
    "RecordReason",
    "RecoveryPlan",
    "Release",
    "Remark",
    "RemoteCopies",
    "RemoteOffsets",
    "RemotePartitionId",
    "RemoteSegmentId",
    "RemoteStore",
    "RemoteTier",
    "Replica",
    "Requirement",
    "RetainedSegment",
    "RetentionPlan",
    "RetentionReason",
    "RollReason",
    "SalvagedSegment",
    "ScanStatistics",
    "SchemaText",
    "Schemas",
    "SegmentCompaction",
    "SegmentFacts",
    "SegmentFate",
    "SegmentFiles",
    "SkippedEntry",
    "SmallFile",
    "SourceFile",
    "Split",
    "Standing",
    "StoredObject",
    "StoredSegment",
    "Tail",
    "TailKind",
    "TierExtent",
    "TierLayout",
    "TimeIndex",
    "TimeIndexOffset",
    "TimestampOffset",
    "TopicImage",
    "Traffic",
    "TransactionIndex",
    "Transactions",
    "TruncationPlan",
    "TxnIndexSearchResult",
    "Window",
]

_LAZY: Final = LazyNames(
    __name__,
    {
        "checks.finding": ("Extent", "Finding"),
        "cleaning.compaction": ("CompactedSegment", "CompactionAction", "CompactionPlan", "SegmentCompaction"),
        "cleaning.compaction_apply": ("Compacted", "PreparedCompaction"),
        "cleaning.compaction_rules": ("BatchAction", "BatchFate", "RecordFate", "RecordReason"),
        "cleaning.deletion": ("PreparedRetention",),
        "cleaning.retention": ("RetainedSegment", "RetentionPlan", "RetentionReason", "SegmentFate"),
        "cluster.cluster": ("Cluster", "CommittedOffset", "CoordinatorState", "Group"),
        "cluster.comparison": ("Election", "Replica", "Standing"),
        "cluster.image": ("ConfigResource", "ImageRecord", "MetadataImage", "QuotaEntity", "Release", "TopicImage"),
        "cluster.metadata_log": ("MetadataLog", "MetadataRecord", "MetadataState"),
        "cluster.new_image": ("NewImage", "NewNode", "Note"),
        "cluster.resurrection": ("PreparedResurrection",),
        "codec.framing": ("FrameWalk",),
        "engine": ("Choice",),
        "generation.anonymise": ("Anonymised", "NotUnderstood"),
        "generation.generate": ("GeneratedLog", "GeneratedPartition"),
        "log.directory": ("LogDirectories", "LogDirectory"),
        "log.entry_table": ("EntryTable",),
        "log.gaps": ("Gap", "GapKind"),
        "log.listing": ("NamedFile", "PartitionEntry", "PartitionListing", "SegmentFiles"),
        "log.index_file": ("IndexedOffset", "OffsetIndex", "TimeIndex", "TransactionIndex", "TxnIndexSearchResult"),
        "log.partition": ("Partition",),
        "log.remote_store": ("KnowsTiered", "RemoteCopies", "RemoteOffsets", "RemoteStore"),
        "log.reading": ("Fetch",),
        "log.segment": ("LogSegment",),
        "log.transactions": ("Transactions",),
        "model": (
            "AbortedTxn",
            "EpochStart",
            "Frame",
            "Message",
            "MetaProperties",
            "MissingOffsets",
            "OffsetPosition",
            "Record",
            "RecordBatch",
            "RecordBatchHeader",
            "RecordHeader",
            "Tail",
            "TailKind",
            "TimestampOffset",
        ),
        "names": ("FileKind", "FileName", "ObjectKind", "PartitionDirectoryName"),
        "plans": ("PreparedIndexes", "PreparedSalvage"),
        "recovery.apply": ("PreparedRecovery",),
        "recovery.index_rebuild": ("RebuiltIndex", "RebuiltSegment"),
        "recovery.index_settings": ("IndexSettings",),
        "recovery.plan": ("Circumstances", "LossReason", "Losses", "LostOffsets", "RecoveryPlan"),
        "recovery.salvage_placement": ("SalvagedSegment",),
        "recovery.salvage_scan": ("DamagedRange",),
        "recovery.segment_scan": ("Cut", "Part", "Remark", "Split"),
        "recovery.truncation": ("PreparedTruncation", "TruncationPlan"),
        "requirements": ("BrokerMark", "Requirement"),
        "scan_statistics": ("FallbackCause", "ScanStatistics"),
        "state.config": ("IndexUnit", "TimeIndexOffset"),
        "state.root_files": ("CheckpointedState",),
        "storage.byte_source": ("ByteSource", "SourceFile", "Window"),
        "storage.log_storage": ("DirectoryEntries", "SkippedEntry", "FileStatus", "LogStorage"),
        "storage.environment": ("Condition",),
        "storage.files": ("FileStep", "FileHandle", "Files"),
        "storage.object_store": ("Traffic",),
        "tables.progress": ("Change", "ChangeKind", "ExportedPartition", "OpenTransaction"),
        "tier.audit": ("AuditExtent", "TierExtent"),
        "tier.chunked_bytes": ("ChunkCache",),
        "tier.segments": ("RemotePartitionId", "RemoteSegmentId"),
        "tier.layout": (
            "KeyRing",
            "LogFile",
            "ObjectReader",
            "OpenedSegment",
            "SegmentFacts",
            "SmallFile",
            "StoredObject",
            "StoredSegment",
            "TierLayout",
        ),
        "tier.layouts": ("LocalTierLayout",),
        "tier.local_metadata": ("LocalMetadataTopic",),
        "tier.remote_store": ("RemoteTier",),
        "values.decoder": ("Decoder",),
        "values.schemas": ("SchemaText", "Schemas"),
        "writing.append": ("RollReason",),
        "writing.partition_log": ("Appended",),
    },
)


def __getattr__(name: str) -> object:
    value = globals()[name] = _LAZY.load(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
