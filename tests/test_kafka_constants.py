"""What this package knows of Kafka's constants, names and settings is what Kafka's own classes said when asked.

The witnesses are `fixtures/witnesses/constants.json` and `log_settings.json`; `fixtures/make/constants.py` makes them.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from dataclasses import fields
from typing import TYPE_CHECKING, Final

import pytest
from helpers.support import FIXTURES
from helpers.walking import each_of

from seglog_format import (
    CompressionCodec,
    ControlRecordType,
    LogConfig,
    OffsetSpec,
    TimestampType,
    layouts,
    model,
    names,
)
from seglog_format.cleaning import compaction_pass, retention
from seglog_format.cluster import cluster as kafka_numbers
from seglog_format.cluster import image, metadata_log, new_image
from seglog_format.cluster.image import RELEASES
from seglog_format.codec import build, checkpoints, framing, side_files
from seglog_format.codec.checksum import crc32c
from seglog_format.codec.compression import snappy, zstd
from seglog_format.errors import FormatError
from seglog_format.log import index_file
from seglog_format.schema import coordinator_records, fixed_fields, metadata_records
from seglog_format.serve import groups, kept_offsets
from seglog_format.state import config, producer_state
from seglog_format.tier.segments import PartitionDeleteState, SegmentState
from seglog_format.writing import log_writer

if TYPE_CHECKING:
    from collections.abc import Mapping

WITNESSES: Final = FIXTURES / "witnesses"
ANSWERS: Final[dict[str, dict[str, str]]] = json.loads((WITNESSES / "constants.json").read_text("utf-8"))["answers"]
SETTINGS: Final[dict[str, dict[str, dict[str, str]]]] = json.loads(
    (WITNESSES / "log_settings.json").read_text("utf-8")
)["settings"]
NEWEST: Final = "4.4.0"


def newest(question: str) -> str:
    return ANSWERS[question][NEWEST]


def enumeration(question: str, field: str, release: str = NEWEST) -> dict[str, str]:
    """Return the value of a field of each constant of an enumeration."""
    parts = [each.split(" ") for each in ANSWERS[question][release].split("; ")]
    return {name: dict(fact.split("=", 1) for fact in facts)[field] for name, *facts in parts}


BATCH: Final = layouts.RECORD_BATCH_HEADER_LAYOUT
BATCH_FIELDS: Final = [field.name for field in fields(model.RecordBatchHeader) if field.name != "base_timestamp_ms"]
MESSAGES: Final = {0: layouts.MESSAGE_V0_HEADER_LAYOUT, 1: layouts.MESSAGE_V1_HEADER_LAYOUT}
PREFIX: Final = layouts.ENTRY_PREFIX_LAYOUT

CONSTANTS: Final[Mapping[str, object]] = {
    "RecordBatch.NO_TIMESTAMP": model.NO_TIMESTAMP,
    "RecordBatch.NO_PRODUCER_ID": model.NO_PRODUCER_ID,
    "RecordBatch.NO_PRODUCER_EPOCH": model.NO_PRODUCER_EPOCH,
    "RecordBatch.NO_SEQUENCE": model.NO_SEQUENCE,
    "RecordBatch.NO_PARTITION_LEADER_EPOCH": model.NO_PARTITION_LEADER_EPOCH,
    "DefaultRecordBatch.COMPRESSION_CODEC_MASK": model.CODEC_MASK,
    "DefaultRecordBatch.TIMESTAMP_TYPE_MASK": model.TIMESTAMP_TYPE_BIT,
    "DefaultRecordBatch.TRANSACTIONAL_FLAG_MASK": model.TRANSACTIONAL_BIT,
    "DefaultRecordBatch.CONTROL_FLAG_MASK": model.CONTROL_BIT,
    "DefaultRecordBatch.DELETE_HORIZON_FLAG_MASK": model.DELETE_HORIZON_BIT,
    "LegacyRecord.COMPRESSION_CODEC_MASK": model.CODEC_MASK,
    "LegacyRecord.TIMESTAMP_TYPE_MASK": model.TIMESTAMP_TYPE_BIT,
    "LegacyRecord.RECORD_OVERHEAD_V0": framing.MIN_ENTRY_SIZE,
    "Records.LOG_OVERHEAD": model.ENTRY_PREFIX_SIZE,
    "Records.HEADER_SIZE_UP_TO_MAGIC": framing.MAX_TRAILING_SIZE,
    "Records.OFFSET_OFFSET": PREFIX.position("offset"),
    "Records.SIZE_OFFSET": PREFIX.position("size"),
    "Records.MAGIC_OFFSET": PREFIX.position("magic"),
    "DefaultRecordBatch.RECORD_BATCH_OVERHEAD": BATCH.size,
    "EndTransactionMarker.CURRENT_END_TXN_MARKER_VERSION": build.END_MARKER_VERSION,
    "ControlRecordType.CURRENT_CONTROL_RECORD_KEY_SIZE": layouts.CONTROL_RECORD_KEY_LAYOUT.size,
    "OffsetIndex.ENTRY_SIZE": layouts.OFFSET_INDEX_ENTRY_LAYOUT.size,
    "TimeIndex.ENTRY_SIZE": layouts.TIME_INDEX_ENTRY_LAYOUT.size,
    "TransactionIndex.ABORTED_TXN_RECORD_SIZE": layouts.TRANSACTION_INDEX_ENTRY_LAYOUT.size,
    "AbortedTxn.HIGHEST_SUPPORTED_VERSION": side_files.TRANSACTION_INDEX_VERSION,
    "ProducerSnapshot.HIGHEST_SUPPORTED_VERSION": side_files.PRODUCER_SNAPSHOT_VERSION,
    "ProducerStateEntry.NUM_BATCHES_TO_RETAIN": producer_state.REMEMBERED_BATCHES,
    "OffsetCheckpointFile.CURRENT_VERSION": checkpoints.CHECKPOINT_VERSION,
    "LeaderEpochCheckpointFile.CURRENT_VERSION": checkpoints.CHECKPOINT_VERSION,
    "FileQuorumStateStore.LOWEST_SUPPORTED_VERSION": min(checkpoints.QUORUM_STATE_VERSIONS),
    "FileQuorumStateStore.HIGHEST_SUPPORTED_VERSION": max(checkpoints.QUORUM_STATE_VERSIONS),
    "AbstractApiMessageSerde.DEFAULT_FRAME_VERSION": max(metadata_records.FRAME_VERSIONS),
    "LogFileUtils.LOG_FILE_SUFFIX": names.FileKind.LOG.value,
    "LogFileUtils.INDEX_FILE_SUFFIX": names.FileKind.OFFSET_INDEX.value,
    "LogFileUtils.TIME_INDEX_FILE_SUFFIX": names.FileKind.TIME_INDEX.value,
    "LogFileUtils.TXN_INDEX_FILE_SUFFIX": names.FileKind.TRANSACTION_INDEX.value,
    "LogFileUtils.PRODUCER_SNAPSHOT_FILE_SUFFIX": names.FileKind.PRODUCER_SNAPSHOT.value,
    "Snapshots.SUFFIX": names.FileKind.METADATA_SNAPSHOT.value,
    "Snapshots.OFFSET_WIDTH": names.OFFSET_DIGITS,
    "Snapshots.EPOCH_WIDTH": names.EPOCH_DIGITS,
    "LeaderEpochCheckpointFile.LEADER_EPOCH_CHECKPOINT_FILENAME": names.FileKind.LEADER_EPOCH_CHECKPOINT.value,
    "PartitionMetadataFile.PARTITION_METADATA_FILE_NAME": names.FileKind.PARTITION_METADATA.value,
    "FileQuorumStateStore.DEFAULT_FILE_NAME": names.FileKind.QUORUM_STATE.value,
    "LogManager.RECOVERY_POINT_CHECKPOINT_FILE": names.FileKind.RECOVERY_POINT_CHECKPOINT.value,
    "LogManager.LOG_START_OFFSET_CHECKPOINT_FILE": names.FileKind.LOG_START_OFFSET_CHECKPOINT.value,
    "ReplicaManager.HIGH_WATERMARK_FILENAME": names.FileKind.REPLICATION_OFFSET_CHECKPOINT.value,
    "LogCleanerManager.OFFSET_CHECKPOINT_FILE": names.FileKind.CLEANER_OFFSET_CHECKPOINT.value,
    "MetaPropertiesEnsemble.META_PROPERTIES_NAME": names.FileKind.META_PROPERTIES.value,
    "CleanShutdownFileHandler.CLEAN_SHUTDOWN_FILE_NAME": names.FileKind.CLEAN_SHUTDOWN.value,
    "LogManager.LOCK_FILE_NAME": names.FileKind.LOCK.value,
    "RemoteIndexCache.DIR_NAME": names.REMOTE_INDEX_CACHE,
    "Topic.MAX_NAME_LENGTH": names.MAX_TOPIC_SIZE,
    "Topic.CLUSTER_METADATA_TOPIC_NAME": names.METADATA_TOPIC,
    "Topic.GROUP_METADATA_TOPIC_NAME": names.CONSUMER_OFFSETS,
    "Topic.TRANSACTION_STATE_TOPIC_NAME": names.TRANSACTION_STATE,
    "Topic.SHARE_GROUP_STATE_TOPIC_NAME": names.SHARE_GROUP_STATE,
    "TopicBasedRemoteLogMetadataManagerConfig.REMOTE_LOG_METADATA_TOPIC_NAME": names.REMOTE_LOG_METADATA_TOPIC,
    "LeaderConstants.NO_LEADER_CHANGE": metadata_log.NO_LEADER_CHANGE,
    "org.xerial.snappy.SnappyCodec.MAGIC_HEADER": fixed_fields.XERIAL_MAGIC.hex(),
    "org.xerial.snappy.SnappyCodec.HEADER_SIZE": fixed_fields.XERIAL_HEADER_SIZE,
    "org.xerial.snappy.SnappyCodec.DEFAULT_VERSION": snappy.XERIAL_VERSION,
    "org.xerial.snappy.SnappyOutputStream.DEFAULT_BLOCK_SIZE": snappy.BLOCK_SIZE,
}
"""Values of this package, by the question that Kafka's classes answered. All releases that know it have to agree."""


@each_of("question", CONSTANTS)
def test_a_constant_has_the_value_that_kafkas_class_has(question: str) -> None:
    assert set(ANSWERS[question].values()) == {str(CONSTANTS[question])}


@pytest.mark.parametrize("field", BATCH_FIELDS)
def test_a_field_of_a_batch_is_where_kafkas_class_says(field: str) -> None:
    renamed = {"batch_length": "LENGTH", "max_timestamp_ms": "MAX_TIMESTAMP"}
    said = ANSWERS[f"DefaultRecordBatch.{renamed.get(field, field.upper())}_OFFSET"]
    assert set(said.values()) == {str(BATCH.position(field))}


def test_the_first_timestamp_is_where_kafkas_class_says() -> None:
    said = ANSWERS["DefaultRecordBatch.BASE_TIMESTAMP_OFFSET"]
    assert set(said.values()) == {str(BATCH.position("base_timestamp_ms"))}


@pytest.mark.parametrize("magic", MESSAGES)
def test_the_fields_of_a_message_are_where_kafkas_class_says(magic: int) -> None:
    layout = MESSAGES[magic]
    positions = {name: newest(f"LegacyRecord.{name.upper()}_OFFSET") for name in ("crc", "magic", "attributes")}
    if magic:
        positions["timestamp_ms"] = newest("LegacyRecord.TIMESTAMP_OFFSET")
    assert {name: str(layout.position(name) - model.ENTRY_PREFIX_SIZE) for name in positions} == positions
    assert str(layout.size - model.ENTRY_PREFIX_SIZE) == newest(f"LegacyRecord.KEY_SIZE_OFFSET_V{magic}")


def labels(numbers: Mapping[int, str]) -> dict[str, str]:
    return {name.upper().replace("-", "_"): str(number) for number, name in numbers.items()}


ENUMERATIONS: Final = {
    "CompressionType.*": ("id", {each.name: str(each.value) for each in CompressionCodec}, ()),
    "ControlRecordType.*": ("type", {each.name: str(each.value) for each in ControlRecordType}, ("UNKNOWN",)),
    "TimestampType.*": ("name", {each.name: each.value for each in TimestampType}, ()),
    "RemoteLogSegmentState.*": ("id", {each.name: str(each.value) for each in SegmentState}, ()),
    "RemotePartitionDeleteState.*": ("id", {each.name: str(each.value) for each in PartitionDeleteState}, ()),
    "ConfigResource$Type.*": ("id", labels(kafka_numbers.CONFIG_RESOURCES), ("UNKNOWN",)),
    "ResourceType.*": ("code", labels(kafka_numbers.ACL_RESOURCES), ("UNKNOWN", "ANY")),
    "PatternType.*": ("code", labels(kafka_numbers.PATTERN_TYPES), ("UNKNOWN", "ANY", "MATCH")),
    "AclOperation.*": ("code", labels(kafka_numbers.OPERATIONS), ("UNKNOWN", "ANY")),
    "AclPermissionType.*": ("code", labels(kafka_numbers.PERMISSIONS), ("UNKNOWN", "ANY")),
    "ScramMechanism.*": ("type", labels(kafka_numbers.MECHANISMS), ("UNKNOWN",)),
    "RecordState.*": ("id", labels(coordinator_records.DELIVERY_STATES), ()),
}
"""Enumerations of this package: which fact of Kafka's constants counts, names with it, and constants of no record."""


@pytest.mark.parametrize("question", ENUMERATIONS)
def test_an_enumeration_has_the_numbers_of_kafkas(question: str) -> None:
    field, ours, left_out = ENUMERATIONS[question]
    said = enumeration(question, field)
    assert {name: value for name, value in said.items() if name not in left_out} == ours


def test_the_level_of_zstd_is_kafkas() -> None:
    [said] = {each.partition("ZSTD ")[2] for each in ANSWERS["CompressionType.*"].values() if "defaultLevel" in each}
    assert said.endswith(f"defaultLevel={zstd.LEVEL}")


MEMBERS: Final = {
    "modern": coordinator_records.CODES["consumerGroupCurrentMemberAssignment"]["state"],
    "streams": coordinator_records.CODES["streamsGroupCurrentMemberAssignment"]["state"],
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_the_states_of_members_have_kafkas_numbers(kind: str) -> None:
    said = enumeration(f"org.apache.kafka.coordinator.group.{kind}.MemberState.*", "value")
    assert {name.replace("_", ""): value for name, value in said.items()} == {
        name.upper(): str(number) for number, name in MEMBERS[kind].items()
    }


@pytest.mark.parametrize(("number", "name"), [*enumerate(coordinator_records.TRANSACTION_STATES)])
def test_a_state_of_a_transaction_has_kafkas_number(number: int, name: str) -> None:
    said = ANSWERS[f"org.apache.kafka.coordinator.transaction.TransactionState.fromId({number}b)"]
    assert {state.replace("_", "").upper() for state in said.values()} == {name.upper()}


@pytest.mark.parametrize("spec", OffsetSpec)
def test_a_special_timestamp_has_kafkas_number(spec: OffsetSpec) -> None:
    questions = [f"ListOffsetsRequest.{spec.name.removesuffix('_TIMESTAMP')}_TIMESTAMP"]
    assert {value for each in questions for value in ANSWERS[each].values()} == {str(spec.value)}


def test_every_kind_of_metadata_record_has_kafkas_number_and_is_replayed() -> None:
    said = enumeration("MetadataRecordType.*", "id")
    ours = {kind.name: str(number) for number, kind in metadata_records.METADATA_RECORDS.items()}
    assert said.items() <= ours.items()
    transactions = {"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"}
    assert said.keys() - transactions <= metadata_log.RULES.keys()


# Names


@pytest.mark.parametrize("state", names.STATES)
def test_a_directory_of_a_state_has_the_name_that_kafka_gives_it(state: str) -> None:
    suffix = ANSWERS[f"LogFileUtils.{state.upper()}_DIR_SUFFIX"]
    assert set(suffix.values()) == {f"-{state}"}
    unique = "0123456789abcdef" * 2
    said = newest(f"UnifiedLog.log{state.title()}DirName(partition:orders-7)").replace("<32 digits>", unique)
    assert names.partition_directory_name("orders", 7, unique, state) == said


@pytest.mark.parametrize("name", ["cleaned", "deleted", "swap"])
def test_a_temporary_file_has_kafkas_suffix(name: str) -> None:
    [suffix] = set(ANSWERS[f"LogFileUtils.{name.upper()}_FILE_SUFFIX"].values())
    assert suffix in names.TEMPORARY_SUFFIXES


@pytest.mark.parametrize("suffix", ["PARTIAL_SUFFIX", "DELETE_SUFFIX"])
def test_a_metadata_snapshot_that_is_not_in_use_has_kafkas_suffix(suffix: str) -> None:
    [said] = set(ANSWERS[f"Snapshots.{suffix}"].values())
    parsed = names.parse_file_name(f"{0:020}-{0:010}{said}")
    assert parsed is None or parsed.kind is names.FileKind.METADATA_SNAPSHOT
    assert f".{said.rpartition('.')[2]}" in names.TEMPORARY_SUFFIXES


@pytest.mark.parametrize("offset", [0, 5, 2**31, 2**63 - 1])
def test_a_segment_has_the_name_that_kafka_gives_it(offset: int) -> None:
    said = set(ANSWERS[f"LogFileUtils.filenamePrefixFromOffset({offset}L)"].values())
    assert {names.segment_file_name(offset, names.FileKind.LOG)} == {f"{name}.log" for name in said}


TOPICS: Final = [each for each in ANSWERS if each.startswith("Topic.isValid('")]


@each_of("question", TOPICS)
def test_a_topic_has_a_legal_name_where_kafka_says_so(question: str) -> None:
    topic = question.removeprefix("Topic.isValid('").removesuffix("')")
    assert set(ANSWERS[question].values()) == {str(names.is_legal_topic(topic)).lower()}


PARSED: Final = "UnifiedLog.parseTopicPartitionName(file:/logs/"
DIRECTORIES: Final = [each.removeprefix(PARSED).removesuffix(")") for each in ANSWERS if each.startswith(PARSED)]


@each_of("name", DIRECTORIES)
def test_a_directory_is_the_partition_that_kafka_takes_it_for(name: str) -> None:
    try:
        topic, partition = names.parse_partition_directory(name).topic_partition
        found = f"{topic}-{partition}"
    except FormatError:
        found = "throws KafkaException"
    assert found == newest(f"{PARSED}{name})")


CHECKED: Final = [each for each in ANSWERS if each.startswith("Crc32C.compute(hex:")]


@pytest.mark.parametrize("question", CHECKED)
def test_a_checksum_is_the_one_that_kafka_computes(question: str) -> None:
    data = bytes.fromhex(question.removeprefix("Crc32C.compute(hex:").partition(",")[0])
    assert set(ANSWERS[question].values()) == {str(crc32c(data))}


def test_reserved_ids_of_directories_are_below_the_bound() -> None:
    reserved = [newest(f"DirectoryId.{name}") for name in ("LOST", "UNASSIGNED", "MIGRATING")]
    assert {names.is_reserved_id(urlsafe_b64decode(f"{each}==")) for each in reserved} == {True}


# Settings


def declared(name: str, release: str = NEWEST) -> dict[str, str]:
    return SETTINGS[release][name]


def in_kafkas_words(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case frozenset():
            return f"[{', '.join(sorted(value))}]"
        case TimestampType():
            return str(value.value)
    return str(value)


OF_A_LOG: Final = [field.name for field in fields(LogConfig) if config.kafka_name(field.name) in SETTINGS[NEWEST]]
UNKNOWN: Final = {"remote_storage_enable": "false", "remote_log_storage_system_enable": "false"}
"""Settings that this package takes for unknown where they are not given, with Kafka's defaults."""


@each_of("field", OF_A_LOG)
def test_the_default_of_a_setting_is_kafkas(field: str) -> None:
    value = getattr(LogConfig(), field)
    expected = UNKNOWN[field] if value is None else in_kafkas_words(value)
    assert declared(config.kafka_name(field))["default"] == expected


def test_every_setting_of_a_log_is_kafkas() -> None:
    assert {field.name for field in fields(LogConfig)} - set(OF_A_LOG) == {"generation"}


@pytest.mark.parametrize("release", SETTINGS)
@each_of("field", config.BOUNDS)
def test_the_bounds_of_a_setting_are_kafkas(release: str, field: str) -> None:
    name = config.kafka_name(field)
    allowed = declared(name, release)["allowed"]
    if not allowed:  # a number without a check
        assert name == "retention.bytes"
        return
    least = RELEASES["4.4"].least_settings.get(name) if release >= "4" else None
    assert float(allowed.strip("[]").split(",")[0]) == (least or config.BOUNDS[field][0])


RELEASED: Final = {"3.9": "3.9.1", "4.1": "4.1.1", "4.4": "4.4.0"}


@pytest.mark.parametrize("line", RELEASES)
def test_the_least_values_of_a_release_are_those_that_its_classes_accept(line: str) -> None:
    """A node does not start with a topic's setting below the bound, so every bound that rose has to be known."""
    raised = {}
    for name, facts in SETTINGS[RELEASED[line]].items():
        if name in SETTINGS["3.9.1"] and facts["declaredIn"].endswith("LogConfig"):
            now, before = facts["allowed"], SETTINGS["3.9.1"][name]["allowed"]
            if now != before:
                raised[name] = int(now.strip("[]").split(",")[0])
    assert dict(RELEASES[line].least_settings) == raised


def test_the_settings_of_a_topic_that_kafka_4_no_longer_has_are_left_out_of_a_new_node() -> None:
    of_topics = {
        name
        for name, facts in SETTINGS["3.9.1"].items()
        if facts["declaredIn"].endswith("LogConfig") and not name.startswith("log.")
    }
    gone = {name for name, reason in new_image.DROPPED_SETTINGS.items() if reason.startswith("Kafka 4 ")}
    assert of_topics - SETTINGS[NEWEST].keys() == gone


LEVELS: Final[dict[str, dict[str, dict[str, str]]]] = json.loads(
    (WITNESSES / "feature_levels.json").read_text("utf-8")
)["levels"]
NOT_IN_THE_IMAGE: Final = ("kraft.version", "test.", "unit.test.")
"""Beginnings of the names of features that no metadata record sets, or that only Kafka's tests have."""


def in_production(release: str) -> dict[str, int]:
    """Return the highest level of each feature that a release has in production, without those of level 0."""
    found = {
        name: max(int(level.partition(",")[0]) for level in levels.values() if level.endswith("in production"))
        for name, levels in LEVELS[release].items()
        if not name.startswith(NOT_IN_THE_IMAGE) and "in production" in "".join(levels.values())
    }
    return {name: level for name, level in found.items() if level > 0}


@pytest.mark.parametrize("line", RELEASES)
def test_a_release_accepts_the_levels_that_its_classes_have_in_production(line: str) -> None:
    """Of 3.9 only `metadata.version` says which level is in production."""
    assert dict(RELEASES[line].features) == in_production(RELEASED[line])
    least = min(int(level.partition(",")[0]) for level in LEVELS[RELEASED[line]]["metadata.version"].values())
    assert RELEASES[line].least_features.get("metadata.version", 0) == max(least, 0)


def synonyms(release: str) -> dict[str, list[tuple[str, int]]]:
    """Return the settings of a broker that a topic's setting follows, each with what it multiplies a number by."""
    said = ANSWERS["ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS"][release]
    found = {}
    for each in said.split("; "):
        topic, _, brokers = each.partition(": ")
        pairs = [broker.split(" 2=") for broker in brokers.split(", ")]
        found[topic] = [(name, int(made) // 2) for name, made in pairs]
    return found


@pytest.mark.parametrize("release", ANSWERS["ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS"])
def test_the_settings_of_a_broker_become_those_of_its_topics_as_in_kafka(release: str) -> None:
    ours = {topic: list(names) for topic, names in config.IN_UNITS.items()}
    ours |= {topic: [(broker, 1)] for broker, topic in config.RENAMED.items()}
    known = {config.kafka_name(field.name) for field in fields(LogConfig)}
    said = {topic: brokers for topic, brokers in synonyms(release).items() if topic in known}
    assert ours == said


NUMBERS: Final[Mapping[str, object]] = {
    "offsets.topic.num.partitions": new_image.DEFAULT_COUNT,
    "transaction.state.log.num.partitions": new_image.DEFAULT_COUNT,
    "share.coordinator.state.topic.num.partitions": new_image.DEFAULT_COUNT,
    "producer.id.expiration.ms": config.PRODUCER_EXPIRATION_MS,
    "index.interval.bytes": index_file.INDEX_INTERVAL_BYTES,
    "offset.metadata.max.bytes": kept_offsets.MAX_METADATA_SIZE,
    "group.max.session.timeout.ms": int(groups.MAX_SESSION_SECONDS * 1000),
    "log.flush.offset.checkpoint.interval.ms": log_writer.CHECKPOINT_INTERVAL_MS,
    "log.retention.check.interval.ms": log_writer.RETENTION_INTERVAL_MS,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("release", SETTINGS)
def test_a_number_of_a_broker_is_its_default(release: str, name: str) -> None:
    if name in SETTINGS[release]:
        assert declared(name, release)["default"] == str(NUMBERS[name])


def test_a_pass_of_compaction_has_as_many_keys_as_kafkas_default_buffer() -> None:
    """An entry of the buffer is a hash of 16 bytes and an offset of 8."""
    buffer, share = (
        declared(f"log.cleaner.{name}")["default"] for name in ("dedupe.buffer.size", "io.buffer.load.factor")
    )
    assert int(int(buffer) // 24 * float(share)) == compaction_pass.MAX_KEYS


def test_topics_that_are_never_tiered_are_kafkas_internal_ones() -> None:
    internal = set(newest("Topic.INTERNAL_TOPICS").split(", "))
    assert internal <= retention.NEVER_TIERED
    assert retention.NEVER_TIERED - internal == {*names.METADATA_TOPICS, names.REMOTE_LOG_METADATA_TOPIC}


def test_resources_of_the_image_are_kafkas() -> None:
    said = enumeration("ConfigResource$Type.*", "id")
    assert (said["TOPIC"], said["BROKER"]) == (str(image.TOPIC_RESOURCE), str(image.BROKER_RESOURCE))
