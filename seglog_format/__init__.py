"""Read, check, write and repair the segmented log format of Apache Kafka, by a specification that runs.

Functions, and the enums and settings that they take, are here; what they return is in `seglog_format.types`, what they
raise in `seglog_format.errors`. Nothing else is public. A name loads its module when it is first used, so that
importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.lazy_names import LazyNames

if TYPE_CHECKING:
    from seglog_format.checks.verify import verify
    from seglog_format.cleaning.compaction import plan_compaction
    from seglog_format.cleaning.compaction_apply import compact, explain_compaction, prepare_compaction
    from seglog_format.cleaning.deletion import prepare_retention, retain_partition
    from seglog_format.cleaning.retention import plan_retention
    from seglog_format.codec.build import build_batch, new_record
    from seglog_format.codec.control_batch import build_end_marker
    from seglog_format.codec.decode import decode_batch
    from seglog_format.codec.encode import encode_batch
    from seglog_format.codec.framing import walk
    from seglog_format.log.directory import open_log_directory
    from seglog_format.log.partition import open_partition
    from seglog_format.log.timestamps import OffsetSpec
    from seglog_format.model import CompressionCodec, ControlRecordType, TimestampType
    from seglog_format.recovery.apply import RecoveryOptions, prepare_recovery, recover_partition
    from seglog_format.recovery.plan import plan_for_directory, plan_recovery
    from seglog_format.recovery.truncation import truncate_to
    from seglog_format.requirements import Severity, requirement
    from seglog_format.state.config import BrokerGeneration, LogConfig
    from seglog_format.state.producer_state import Origin
    from seglog_format.storage.environment import Environment
    from seglog_format.writing.log_writer import LogWriter
    from seglog_format.writing.writer import PartitionWriter

__all__ = [
    "BrokerGeneration",
    "CompressionCodec",
    "ControlRecordType",
    "Environment",
    "LogConfig",
    "LogWriter",
    "OffsetSpec",
    "Origin",
    "PartitionWriter",
    "RecoveryOptions",
    "Severity",
    "TimestampType",
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

_LAZY: Final = LazyNames(
    __name__,
    {
        "checks.verify": ("verify",),
        "cleaning.compaction": ("plan_compaction",),
        "cleaning.compaction_apply": ("compact", "explain_compaction", "prepare_compaction"),
        "cleaning.deletion": ("prepare_retention", "retain_partition"),
        "cleaning.retention": ("plan_retention",),
        "codec.build": ("build_batch", "new_record"),
        "codec.control_batch": ("build_end_marker",),
        "codec.decode": ("decode_batch",),
        "codec.encode": ("encode_batch",),
        "codec.framing": ("walk",),
        "log.directory": ("open_log_directory",),
        "log.partition": ("open_partition",),
        "log.timestamps": ("OffsetSpec",),
        "model": ("CompressionCodec", "ControlRecordType", "TimestampType"),
        "recovery.apply": ("RecoveryOptions", "prepare_recovery", "recover_partition"),
        "recovery.plan": ("plan_for_directory", "plan_recovery"),
        "recovery.truncation": ("truncate_to",),
        "requirements": ("Severity", "requirement"),
        "state.config": ("BrokerGeneration", "LogConfig"),
        "state.producer_state": ("Origin",),
        "storage.environment": ("Environment",),
        "writing.log_writer": ("LogWriter",),
        "writing.writer": ("PartitionWriter",),
    },
)


def __getattr__(name: str) -> object:
    value = globals()[name] = _LAZY.load(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
