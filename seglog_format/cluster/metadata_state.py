"""The state after a sequence of metadata records: the image, the quorum, and where the sequence ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.cluster.image import (
    ELR_FIELDS,
    TOPIC_RESOURCE,
    ConfigResource,
    Fields,
    MetadataImage,
    QuotaEntity,
    TopicImage,
)
from seglog_format.errors import CorruptRecordError, FormatError, Location
from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


# -- replay of metadata records: one small function for each kind of record changes the image --------------------------


NO_LEADER_CHANGE: Final = -2

REPLACED_BY_CHANGE: Final = (
    "isr",
    "replicas",
    "removingReplicas",
    "addingReplicas",
    "directories",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)
"""Fields of a partition that a change record replaces if it has them."""

REPLACED_BY_REGISTRATION_CHANGE: Final = ("logDirs", "cordonedLogDirs")


def replay(image: MetadataImage, kind: str, fields: Fields) -> None:
    """Apply one record of the metadata log to an image.

    Args:
        image: changed in place.
        kind: type of the record by Kafka's name, such as ``TOPIC_RECORD``.
        fields: of the record. Tagged fields may be absent.

    Raises:
        CorruptRecordError: the record refers to a broker, topic or partition that the image does not have, because
            the log has a gap; or its kind is unknown, because a later release wrote it.
    """
    rule = RULES.get(kind)
    if rule is None:
        raise _refused(kind, field="type", expected="a kind of record that this version knows")
    rule(image, fields)


def _refused(found: object, *, field: str, expected: str) -> CorruptRecordError:
    return CorruptRecordError(Location(field=field), "SEG-CTL-010", expected=expected, found=found)


def _nothing(_image: MetadataImage, _fields: Fields) -> None:
    """Change nothing: the record does not affect the image."""


# -- features, producer ids, migration ---------------------------------------------------------------------------------


def _feature_level(image: MetadataImage, fields: Fields) -> None:
    if fields["featureLevel"]:
        image.features[fields["name"]] = fields["featureLevel"]
    else:
        image.features.pop(fields["name"], None)


def _remove_feature_level(image: MetadataImage, fields: Fields) -> None:
    image.features.pop(fields["name"], None)


def _producer_ids(image: MetadataImage, fields: Fields) -> None:
    image.next_producer_id = fields["nextProducerId"]


def _zk_migration_state(image: MetadataImage, fields: Fields) -> None:
    image.zk_migration_state = fields["zkMigrationState"]


# -- brokers and controllers -------------------------------------------------------------------------------------------


def _register_broker(image: MetadataImage, fields: Fields) -> None:
    image.brokers[fields["brokerId"]] = dict(fields)


def _unregister_broker(image: MetadataImage, fields: Fields) -> None:
    image.brokers.pop(fields["brokerId"], None)


def _broker(image: MetadataImage, broker_id: int) -> Fields:
    if broker_id not in image.brokers:
        raise _refused(broker_id, field="brokerId", expected="a registered broker")
    return image.brokers[broker_id]


def _fence_broker(image: MetadataImage, fields: Fields) -> None:
    _broker(image, fields["id"])["fenced"] = True


def _unfence_broker(image: MetadataImage, fields: Fields) -> None:
    _broker(image, fields["id"])["fenced"] = False


def _broker_registration_change(image: MetadataImage, fields: Fields) -> None:
    broker = _broker(image, fields["brokerId"])
    if change := fields.get("fenced", 0):
        broker["fenced"] = change > 0
    if fields.get("inControlledShutdown", 0):
        broker["inControlledShutdown"] = True
    broker |= {name: fields[name] for name in REPLACED_BY_REGISTRATION_CHANGE if fields.get(name) is not None}


def _register_controller(image: MetadataImage, fields: Fields) -> None:
    image.controllers[fields["controllerId"]] = dict(fields)


def _unregister_controller(image: MetadataImage, fields: Fields) -> None:
    image.controllers.pop(fields["controllerId"], None)


# -- topics and partitions ---------------------------------------------------------------------------------------------


def _topic(image: MetadataImage, fields: Fields) -> None:
    image.topics[fields["topicId"]] = TopicImage(fields["name"], fields["topicId"])


def _topic_of(image: MetadataImage, topic_id: str) -> TopicImage:
    if topic_id not in image.topics:
        raise _refused(topic_id, field="topicId", expected="a topic that was created before")
    return image.topics[topic_id]


def _remove_topic(image: MetadataImage, fields: Fields) -> None:
    topic = _topic_of(image, fields["topicId"])
    del image.topics[topic.topic_id]
    image.configs.pop(ConfigResource(TOPIC_RESOURCE, topic.name), None)


def _partition(image: MetadataImage, fields: Fields) -> None:
    _topic_of(image, fields["topicId"]).partitions[fields["partitionId"]] = dict(fields)


def _partition_change(image: MetadataImage, fields: Fields) -> None:
    partitions = _topic_of(image, fields["topicId"]).partitions
    number = fields["partitionId"]
    if number not in partitions:
        raise _refused(number, field="partitionId", expected="a partition that was created before")
    partitions[number] = changed_partition(partitions[number], fields)


def changed_partition(partition: Fields, change: Fields) -> Fields:
    """Return the fields of a partition after a `PartitionChangeRecord`.

    The partition epoch increases with each change, the leader epoch with each change that sets a leader.
    """
    replaced = {name: change[name] for name in REPLACED_BY_CHANGE if change.get(name) is not None}
    result: dict[str, Any] = partition | replaced
    result["partitionEpoch"] = partition["partitionEpoch"] + 1
    leader = change.get("leader", NO_LEADER_CHANGE)
    if leader != NO_LEADER_CHANGE:
        result |= {"leader": leader, "leaderEpoch": partition["leaderEpoch"] + 1}
    if change.get("leaderRecoveryState", -1) >= 0:
        result["leaderRecoveryState"] = change["leaderRecoveryState"]
    return result


def _empty_elr(image: MetadataImage, fields: Fields) -> None:
    for topic in image.topics.values():
        if fields["topicName"] in {"", topic.name}:
            for number, partition in topic.partitions.items():
                if any(partition.get(name) for name in ELR_FIELDS):
                    topic.partitions[number] = changed_partition(partition, {name: [] for name in ELR_FIELDS})


# -- configurations, quotas, security ----------------------------------------------------------------------------------


def _config(image: MetadataImage, fields: Fields) -> None:
    resource = ConfigResource(fields["resourceType"], fields["resourceName"])
    _set(image.configs, resource, fields["name"], fields["value"])


def _client_quota(image: MetadataImage, fields: Fields) -> None:
    parts = sorted((part["entityType"], part["entityName"]) for part in fields["entity"])
    value = None if fields["remove"] else fields["value"]
    _set(image.quotas, QuotaEntity(tuple(parts)), fields["key"], value)


def _set(values_of: dict[Any, dict[str, Any]], owner: object, name: str, value: object) -> None:
    """Set a value, or remove it if it is None; remove an owner without values."""
    values = values_of.setdefault(owner, {})
    if value is None:
        values.pop(name, None)
    else:
        values[name] = value
    if not values:
        del values_of[owner]


def _access_control_entry(image: MetadataImage, fields: Fields) -> None:
    image.acls[fields["id"]] = dict(fields)


def _remove_access_control_entry(image: MetadataImage, fields: Fields) -> None:
    image.acls.pop(fields["id"], None)


def _scram_credential(image: MetadataImage, fields: Fields) -> None:
    image.scram_credentials[fields["name"], fields["mechanism"]] = dict(fields)


def _remove_scram_credential(image: MetadataImage, fields: Fields) -> None:
    image.scram_credentials.pop((fields["name"], fields["mechanism"]), None)


def _delegation_token(image: MetadataImage, fields: Fields) -> None:
    image.delegation_tokens[fields["tokenId"]] = dict(fields)


def _remove_delegation_token(image: MetadataImage, fields: Fields) -> None:
    image.delegation_tokens.pop(fields["tokenId"], None)


RULES: Final[dict[str, Callable[[MetadataImage, Fields], None]]] = {
    "REGISTER_BROKER_RECORD": _register_broker,
    "UNREGISTER_BROKER_RECORD": _unregister_broker,
    "TOPIC_RECORD": _topic,
    "PARTITION_RECORD": _partition,
    "CONFIG_RECORD": _config,
    "PARTITION_CHANGE_RECORD": _partition_change,
    "FENCE_BROKER_RECORD": _fence_broker,
    "UNFENCE_BROKER_RECORD": _unfence_broker,
    "REMOVE_TOPIC_RECORD": _remove_topic,
    "DELEGATION_TOKEN_RECORD": _delegation_token,
    "USER_SCRAM_CREDENTIAL_RECORD": _scram_credential,
    "FEATURE_LEVEL_RECORD": _feature_level,
    "CLIENT_QUOTA_RECORD": _client_quota,
    "PRODUCER_IDS_RECORD": _producer_ids,
    "REMOVE_FEATURE_LEVEL_RECORD": _remove_feature_level,
    "BROKER_REGISTRATION_CHANGE_RECORD": _broker_registration_change,
    "ACCESS_CONTROL_ENTRY_RECORD": _access_control_entry,
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": _remove_access_control_entry,
    "NO_OP_RECORD": _nothing,
    "ZK_MIGRATION_STATE_RECORD": _zk_migration_state,
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": _remove_scram_credential,
    "REMOVE_DELEGATION_TOKEN_RECORD": _remove_delegation_token,
    "REGISTER_CONTROLLER_RECORD": _register_controller,
    "CLEAR_ELR_RECORD": _empty_elr,
    "UNREGISTER_CONTROLLER_RECORD": _unregister_controller,
}


# -- the state after a sequence of metadata records --------------------------------------------------------------------


BEGIN: Final = "BEGIN_TRANSACTION_RECORD"
END: Final = "END_TRANSACTION_RECORD"
ABORT: Final = "ABORT_TRANSACTION_RECORD"


class MetadataRecord(NamedTuple):
    """One record of the metadata log or of a snapshot.

    Attributes:
        offset: of the record; in a snapshot its number among the records.
        epoch: leader epoch of its batch.
        timestamp_ms: time at which the controller wrote it.
        type: Kafka's name of its type, control records included.
        fields: by Kafka's names.
        is_control: whether it is in a control batch.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    type: str
    fields: Fields
    is_control: bool


@dataclass(slots=True)
class MetadataState:
    """The state of the metadata after a record.

    Attributes:
        image: topics, brokers, configurations and the rest.
        end_offset: the offset after the last record that was read; 0 if there is none.
        epoch: leader epoch of that record, or of the snapshot; -1 if there is none.
        timestamp_ms: of that record, or of the last record that the snapshot includes; -1 if there is none.
        kraft_version: 0 for a static quorum, 1 for a dynamic quorum, whose voters are in the log.
        voters: fields of each voter of a dynamic quorum.
        leader: id of the last active controller; -1 if no record has it.
        snapshot: the file that reading began with; None if it began with the log.
        snapshot_time_ms: time of the last record that the snapshot includes, from its header; -1 without a snapshot.
        is_finished: whether the snapshot's footer was read.
        has_gap: whether records before the first one of the log are missing.
        problems: descriptions of what could not be read or replayed, and what the image therefore lacks.
    """

    image: MetadataImage = field(default_factory=MetadataImage)
    end_offset: int = 0
    epoch: int = -1
    timestamp_ms: int = -1
    kraft_version: int = 0
    voters: list[Fields] = field(default_factory=list)
    leader: int = -1
    snapshot: Path | None = None
    snapshot_time_ms: int = -1
    is_finished: bool = False
    has_gap: bool = False
    problems: list[str] = field(default_factory=list)
    _pending: list[MetadataRecord] | None = None

    def replay(self, records: Iterable[MetadataRecord]) -> None:
        """Replay records in their order.

        A record that does not fit the image is left out, and damage ends the replay; `problems` lists both. Records of
        a metadata transaction are applied when it ends, as in brokers.
        """
        try:
            for record in records:
                self._take(record)
                self.end_offset, self.epoch = record.offset + 1, record.epoch
                self.timestamp_ms = record.timestamp_ms
        except FormatError as error:
            self.problems.append(str(error))

    def _take(self, record: MetadataRecord) -> None:
        if record.is_control:
            self._control(record)
        elif record.type == BEGIN:
            self._pending = []
        elif record.type in {END, ABORT}:
            self._complete(is_aborted=record.type == ABORT)
        elif self._pending is not None:
            self._pending.append(record)
        else:
            self._apply(record)

    def _complete(self, *, is_aborted: bool) -> None:
        pending, self._pending = self._pending, None
        for record in () if is_aborted else pending or ():
            self._apply(record)

    def _apply(self, record: MetadataRecord) -> None:
        try:
            replay(self.image, record.type, record.fields)
        except FormatError as error:
            problem = f"{kafka_name(error.location.field)}: expected {error.expected}, found {error.found}"
            self.problems.append(f"record {record.offset}, {record.type}: {problem}")

    def _control(self, record: MetadataRecord) -> None:
        if record.type in CONTROL_RULES:
            CONTROL_RULES[record.type](self, record.fields)


def _kraft_version(state: MetadataState, fields: dict[str, Any]) -> None:
    state.kraft_version = fields["kRaftVersion"]


def _voters(state: MetadataState, fields: dict[str, Any]) -> None:
    state.voters = fields["voters"]


def _leader_change(state: MetadataState, fields: dict[str, Any]) -> None:
    state.leader = fields["leaderId"]


def _snapshot_header(state: MetadataState, fields: dict[str, Any]) -> None:
    state.snapshot_time_ms = fields["lastContainedLogTimestamp"]


def _snapshot_footer(state: MetadataState, _fields: dict[str, Any]) -> None:
    state.is_finished = True


CONTROL_RULES: Final[dict[str, Callable[[MetadataState, Fields], None]]] = {
    "KRAFT_VERSION": _kraft_version,
    "KRAFT_VOTERS": _voters,
    "LEADER_CHANGE": _leader_change,
    "SNAPSHOT_HEADER": _snapshot_header,
    "SNAPSHOT_FOOTER": _snapshot_footer,
}
