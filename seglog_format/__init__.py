"""Read, check, write and repair the segmented log format of Apache Kafka, by a specification that runs.

Functions, and the enums and settings that they take, are here; what they return is in `seglog_format.types`, what they
raise in `seglog_format.errors`. Nothing else is public. A name loads its module when it is first used, so
importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.lazy_names import LazyNames

if TYPE_CHECKING:
    from seglog_format.checks.verify import verify
    from seglog_format.cluster.cluster import open_cluster
    from seglog_format.cluster.resurrection import resurrect
    from seglog_format.codec.build import build_batch, build_end_marker, build_message_entry, new_record
    from seglog_format.codec.decode import decode_batch
    from seglog_format.codec.encode import encode_batch, encode_columns
    from seglog_format.codec.framing import walk
    from seglog_format.engine import Engine
    from seglog_format.generation.anonymise import anonymise
    from seglog_format.generation.generate import generate
    from seglog_format.log.directory import open_log_directory
    from seglog_format.log.partition import open_partition
    from seglog_format.log.reading import OffsetSpec
    from seglog_format.model import CompressionCodec, ControlRecordType, TimestampType
    from seglog_format.plans import compact, rebuild_indexes, recover, retain, salvage, truncate
    from seglog_format.recovery.apply import RecoveryOptions
    from seglog_format.requirements import Severity, requirement
    from seglog_format.state.config import BrokerGeneration, LogConfig
    from seglog_format.state.producer_state import Origin
    from seglog_format.storage.environment import Environment
    from seglog_format.tables.export import export
    from seglog_format.tables.polars_scan import scan_polars
    from seglog_format.tables.schema_topic import read_schemas
    from seglog_format.tier.remote_store import open_tier
    from seglog_format.values.decoder import value_decoder
    from seglog_format.writing.log_writer import LogWriter
    from seglog_format.writing.writer import PartitionWriter

__all__ = [
    "BrokerGeneration",
    "CompressionCodec",
    "ControlRecordType",
    "Engine",
    "Environment",
    "LogConfig",
    "LogWriter",
    "OffsetSpec",
    "Origin",
    "PartitionWriter",
    "RecoveryOptions",
    "Severity",
    "TimestampType",
    "anonymise",
    "build_batch",
    "build_end_marker",
    "build_message_entry",
    "compact",
    "decode_batch",
    "encode_batch",
    "encode_columns",
    "export",
    "generate",
    "new_record",
    "open_cluster",
    "open_log_directory",
    "open_partition",
    "open_tier",
    "read_schemas",
    "rebuild_indexes",
    "recover",
    "requirement",
    "resurrect",
    "retain",
    "salvage",
    "scan_polars",
    "truncate",
    "value_decoder",
    "verify",
    "walk",
]

_LAZY: Final = LazyNames(
    __name__,
    {
        "checks.verify": ("verify",),
        "cluster.cluster": ("open_cluster",),
        "cluster.resurrection": ("resurrect",),
        "codec.build": ("build_batch", "build_end_marker", "build_message_entry", "new_record"),
        "codec.encode": ("encode_columns", "encode_batch"),
        "codec.decode": ("decode_batch",),
        "codec.framing": ("walk",),
        "engine": ("Engine",),
        "generation.anonymise": ("anonymise",),
        "generation.generate": ("generate",),
        "log.directory": ("open_log_directory",),
        "log.partition": ("open_partition",),
        "log.reading": ("OffsetSpec",),
        "model": ("CompressionCodec", "ControlRecordType", "TimestampType"),
        "plans": ("compact", "recover", "retain", "truncate", "rebuild_indexes", "salvage"),
        "recovery.apply": ("RecoveryOptions",),
        "requirements": ("Severity", "requirement"),
        "state.config": ("BrokerGeneration", "LogConfig"),
        "state.producer_state": ("Origin",),
        "storage.environment": ("Environment",),
        "tables.export": ("export",),
        "tables.polars_scan": ("scan_polars",),
        "tables.schema_topic": ("read_schemas",),
        "tier.remote_store": ("open_tier",),
        "values.decoder": ("value_decoder",),
        "writing.log_writer": ("LogWriter",),
        "writing.writer": ("PartitionWriter",),
    },
)


def __getattr__(name: str) -> object:
    value = globals()[name] = _LAZY.load(name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
