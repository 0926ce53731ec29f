"""The segmented log format of Apache Kafka, written down so exactly that it runs.

The names below load their modules when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.checks import Finding, verify
    from seglog_format.codec.decode import decode_batch
    from seglog_format.codec.framing import walk
    from seglog_format.errors import (
        CorruptIndexError,
        CorruptRecordError,
        FormatError,
        Location,
        OffsetOutOfRangeError,
        RefusedError,
        SeglogError,
        TruncatedError,
        UnsupportedVersionError,
        UsageError,
    )
    from seglog_format.lifecycle.recovery import RecoveryPlan, plan_for_directory, plan_recovery
    from seglog_format.lifecycle.segment_scan import Cut
    from seglog_format.log.directory import LogDirectories, LogDirectory, open_log_directory
    from seglog_format.log.partition import Partition, open_partition
    from seglog_format.log.reading import Fetch
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import (
        AbortedTxn,
        Message,
        OffsetPosition,
        Record,
        RecordBatch,
        RecordBatchHeader,
        RecordHeader,
        TimestampOffset,
    )
    from seglog_format.requirements import Requirement, requirement

__all__ = [
    "AbortedTxn",
    "CorruptIndexError",
    "CorruptRecordError",
    "Cut",
    "Fetch",
    "Finding",
    "FormatError",
    "Location",
    "LogDirectories",
    "LogDirectory",
    "LogSegment",
    "Message",
    "OffsetOutOfRangeError",
    "OffsetPosition",
    "Partition",
    "Record",
    "RecordBatch",
    "RecordBatchHeader",
    "RecordHeader",
    "RecoveryPlan",
    "RefusedError",
    "Requirement",
    "SeglogError",
    "TimestampOffset",
    "TruncatedError",
    "UnsupportedVersionError",
    "UsageError",
    "decode_batch",
    "open_log_directory",
    "open_partition",
    "plan_for_directory",
    "plan_recovery",
    "requirement",
    "verify",
    "walk",
]

_NAMES: Final = {
    "checks": (
        "Finding",
        "verify",
    ),
    "codec.decode": ("decode_batch",),
    "codec.framing": ("walk",),
    "errors": (
        "CorruptIndexError",
        "CorruptRecordError",
        "FormatError",
        "Location",
        "OffsetOutOfRangeError",
        "RefusedError",
        "SeglogError",
        "TruncatedError",
        "UnsupportedVersionError",
        "UsageError",
    ),
    "lifecycle.recovery": (
        "Cut",
        "RecoveryPlan",
        "plan_for_directory",
        "plan_recovery",
    ),
    "lifecycle.segment_scan": ("Cut",),
    "log.directory": (
        "LogDirectories",
        "LogDirectory",
        "open_log_directory",
    ),
    "log.partition": (
        "Partition",
        "open_partition",
    ),
    "log.reading": ("Fetch",),
    "log.segment": ("LogSegment",),
    "model": (
        "AbortedTxn",
        "Message",
        "OffsetPosition",
        "Record",
        "RecordBatch",
        "RecordBatchHeader",
        "RecordHeader",
        "TimestampOffset",
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
