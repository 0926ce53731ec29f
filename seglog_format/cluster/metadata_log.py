"""The metadata of a KRaft cluster: reading snapshot and log, the state after their records, the history of a topic."""

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
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import decode_metadata_record
from seglog_format.errors import CorruptRecordError, FormatError, Location
from seglog_format.field_names import kafka_name
from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.partition import Partition
from seglog_format.log.segment import LogSegment
from seglog_format.model import INT64_MAX, BatchHeader, Message, Record, RecordBatch, TailKind
from seglog_format.names import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
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


# -- the history of one topic, from the records of the metadata log ----------------------------------------------------


EVENTS: Final = {
    "TOPIC_RECORD": "created",
    "PARTITION_RECORD": "partition added",
    "PARTITION_CHANGE_RECORD": "partition changed",
    "CONFIG_RECORD": "setting changed",
    "CLEAR_ELR_RECORD": "eligible leader replicas cleared",
    "REMOVE_TOPIC_RECORD": "deleted",
}


class TopicEvent(NamedTuple):
    """An event in the history of a topic.

    Attributes:
        offset: of the record.
        timestamp_ms: time at which the controller wrote the record.
        event: a value of `EVENTS`.
        topic_id: of the topic at that time; empty before it was created.
        fields: of the record, by Kafka's names.
    """

    offset: int
    timestamp_ms: int
    event: str
    topic_id: str
    fields: dict[str, Any]


def topic_history(records: Iterable[MetadataRecord], name: str) -> Iterator[TopicEvent]:
    """Yield the events of a topic, in the order of the log.

    Args:
        records: of the metadata log.
        name: of the topic; a topic that was deleted and created again has another id.
    """
    topic_id = ""
    for record in records:
        if record.is_control or record.type not in EVENTS:
            continue
        if record.type == "TOPIC_RECORD" and record.fields["name"] == name:
            topic_id = record.fields["topicId"]
        if _is_about(record, name, topic_id):
            event = EVENTS[record.type]
            yield TopicEvent(record.offset, record.timestamp_ms, event, topic_id, record.fields)


def _is_about(record: MetadataRecord, name: str, topic_id: str) -> bool:
    fields = record.fields
    if record.type == "CONFIG_RECORD":
        return bool(fields["resourceType"] == TOPIC_RESOURCE and fields["resourceName"] == name)
    if record.type == "CLEAR_ELR_RECORD":
        return fields["topicName"] in {"", name} and bool(topic_id)
    return bool(topic_id) and fields["topicId"] == topic_id


# -- reading the metadata of a KRaft cluster: the newest complete snapshot, then the log after it ----------------------


class MetadataLog:
    """The metadata log of one node: its snapshots and segments.

    Attributes:
        path: of the directory ``__cluster_metadata-0``; in Kafka 2.8 ``@metadata-0``.
        snapshots: the finished snapshots, oldest first.
    """

    def __init__(self, path: Path) -> None:
        """List the directory.

        Raises:
            UsageError: there is no such directory.
        """
        self.path = path
        self._listing = list_partition(path)
        finished = (each for each in self._listing.metadata_snapshots if not each.name.suffix)
        self.snapshots = tuple(sorted(finished, key=lambda each: (each.base_offset, each.name.epoch)))

    @property
    def log_start_offset(self) -> int | None:
        """The base offset of the first segment; None without segments."""
        return self._listing.base_offsets[0] if self._listing.segments else None

    def records(self, from_offset: int = 0) -> Iterator[MetadataRecord]:
        """Yield the records of the segments from an offset on, in offset order.

        Raises:
            FormatError: while iterating: at the first damaged entry, or the first record that cannot be decoded.
        """
        with Partition(self._listing) as partition:
            for segment in partition.segments:
                if segment.allowed.last >= from_offset:
                    records = records_of(segment.batches(), segment.path)
                    yield from (record for record in records if record.offset >= from_offset)

    def state(self, *, at_offset: int | None = None, at_time_ms: int | None = None) -> MetadataState:
        """Return the state of the metadata after a record.

        Args:
            at_offset: the last record to replay; all by default.
            at_time_ms: leave out records that were written later.
        """
        last = INT64_MAX if at_offset is None else at_offset
        limit = INT64_MAX if at_time_ms is None else at_time_ms
        state = self._newest_snapshot(last, limit)
        first = self.log_start_offset
        if first is not None and first > state.end_offset:
            state.has_gap = True
            state.problems.append(f"{self.path}: records {state.end_offset} to {first - 1} are missing")
        state.replay(self._until(state.end_offset, last, limit))
        if at_offset is None and at_time_ms is None and not state.problems:
            state.problems += self._losses(state.end_offset)
        return state

    def _losses(self, end: int) -> Iterator[str]:
        """Yield a text for each sign that the log had more after its last whole entry."""
        with Partition(self._listing) as partition:
            tail = partition.segments[-1].tail if partition.segments else None
            if tail is not None and tail.kind in {TailKind.TRAILING, TailKind.PARTIAL}:
                yield f"{partition.segments[-1].path}: the log ends within an entry, at position {tail.position}"
        reached = max((each.base_offset for each in self._listing.snapshots), default=0)
        if reached > end:
            yield f"{self.path}: records {end} to {reached - 1} are missing"

    def _newest_snapshot(self, last: int, limit: int) -> MetadataState:
        """Return the state of the newest complete snapshot without records after a last offset or a time limit."""
        problems: list[str] = []
        for snapshot in reversed(self.snapshots):
            if snapshot.base_offset > last + 1:
                continue
            state = snapshot_state(snapshot.path)
            if state.problems:
                problems += state.problems
            elif state.timestamp_ms <= limit:
                state.end_offset, state.epoch = snapshot.base_offset, snapshot.name.epoch
                state.problems = problems
                return state
        return MetadataState(problems=problems)

    def _until(self, start: int, last: int, limit: int) -> Iterator[MetadataRecord]:
        for record in self.records(start):
            if record.offset > last or record.timestamp_ms > limit:
                return
            yield record


def snapshot_state(path: Path) -> MetadataState:
    """Return the state in a ``.checkpoint`` file.

    Its `end_offset` is the number of records in the file; the name of the file has the end offset of the snapshot. A
    file without the footer is unfinished, which is added to `problems`.
    """
    state = MetadataState(snapshot=path)
    with LogSegment(SegmentFiles(0, path)) as segment:
        state.replay(records_of(segment.batches(), segment.path))
    state.timestamp_ms = state.snapshot_time_ms
    if not state.is_finished:
        state.problems.append(f"{path}: the snapshot does not end with its footer")
    return state


def records_of(batches: Iterable[RecordBatch], path: str) -> Iterator[MetadataRecord]:
    """Decode the records of batches of the metadata log.

    Args:
        batches: in their order.
        path: of the file, for errors.

    Raises:
        FormatError: while iterating: at the first damage.
    """
    for batch in batches:
        for record in batch.records:
            kind, fields = _decoded(batch.header, record, Location(path, batch.position))
            epoch = getattr(batch.header, "partition_leader_epoch", -1)
            yield MetadataRecord(
                record.offset, epoch, record.timestamp_ms, kind, fields, getattr(batch.header, "is_control", False)
            )


def _decoded(header: BatchHeader, record: Record | Message, at: Location) -> tuple[str, dict[str, object]]:
    if getattr(header, "is_control", False):
        control = decode_control_record(record.key, record.value, at)
        return control.label, control.fields
    decoded = decode_metadata_record(METADATA_TOPIC, record.value)
    data = decoded.get("data")
    return str(decoded["type"]), data if isinstance(data, dict) else {}
