"""A cluster, read from the log directories of its brokers, with the state of its coordinators, also as JSON objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.cluster.comparison import Election, Replica
from seglog_format.cluster.image import MetadataImage, TopicImage
from seglog_format.cluster.metadata_log import MetadataLog, snapshot_state
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.errors import FormatError, Location, SeglogError, UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.log.partition import open_partition
from seglog_format.log.side_files import leader_epochs_of, meta_properties_of, topic_id_of
from seglog_format.model import NO_TIMESTAMP, ControlRecordType, Message, MetaProperties, Record, RecordBatch
from seglog_format.names import COORDINATOR_TOPICS, METADATA_TOPICS, FileKind
from seglog_format.recovery.start_problems import start_problems
from seglog_format.schema.coordinator_records import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.cluster.comparison import Replicas
    from seglog_format.cluster.image import Fields
    from seglog_format.cluster.metadata_log import MetadataState
    from seglog_format.log.directory import LogDirectories, LogDirectory, PathOrPaths, TopicPartition
    from seglog_format.log.gaps import Gap
    from seglog_format.log.listing import PartitionEntry


# -- Kafka's names for the numbers in metadata records -----------------------------------------------------------------


CONFIG_RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Types of resources that settings belong to."""

ACL_RESOURCES: Final = {2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user"}
"""Types of resources that an access control entry protects."""

PATTERN_TYPES: Final = {3: "literal", 4: "prefixed"}
PERMISSIONS: Final = {2: "deny", 3: "allow"}
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

OPERATIONS: Final = {
    2: "all",
    3: "read",
    4: "write",
    5: "create",
    6: "delete",
    7: "alter",
    8: "describe",
    9: "cluster-action",
    10: "describe-configs",
    11: "alter-configs",
    12: "idempotent-write",
    13: "create-tokens",
    14: "describe-tokens",
    15: "two-phase-commit",
}


def name_of(names: Mapping[int, str], number: int) -> str:
    """Return the name of a number; an unknown number, from a later release, as digits."""
    return names.get(number, str(number))


# -- the state of a cluster as objects for JSON ------------------------------------------------------------------------


Line: TypeAlias = dict[str, Any]

SECRETS: Final = frozenset({"salt", "storedKey", "serverKey"})
"""Secret fields of a SCRAM credential."""

HIDDEN: Final = "(hidden)"
"""Shown in place of the value of a secret setting."""

SECRET_SETTINGS: Final = ("password", "jaas.config", "keystore.key", "secret")
"""Parts of the names of secret settings; in KRaft, the metadata log has their values as plain text."""

SHOWN_OF_PARTITION: Final = (
    "replicas",
    "isr",
    "removingReplicas",
    "addingReplicas",
    "leader",
    "leaderRecoveryState",
    "leaderEpoch",
    "partitionEpoch",
    "directories",
    "eligibleLeaderReplicas",
    "lastKnownElr",
)


def cluster_line(cluster: Cluster, state: MetadataState | None, image: MetadataImage) -> Line:
    """Return the line about the cluster as a whole.

    ``mode`` is ``kraft`` if there is a metadata log, else ``unknown``: then the topics are those with directories.
    """
    line: Line = {"type": "cluster", "clusterId": cluster.cluster_id, "mode": "unknown" if state is None else "kraft"}
    if state is not None:
        line |= {
            "endOffset": state.end_offset,
            "epoch": state.epoch,
            "timestamp": state.timestamp_ms,
            "kraftVersion": state.kraft_version,
            "voters": state.voters,
            "snapshot": None if state.snapshot is None else state.snapshot.name,
        }
    return line | {"features": image.features, "nextProducerId": image.next_producer_id}


def image_lines(image: MetadataImage, *, with_secrets: bool = False) -> Iterator[Line]:
    """Yield brokers, controllers, topics with their partitions, settings, quotas, access control entries and users.

    Args:
        image: of the cluster.
        with_secrets: whether to include the keys of SCRAM users and passwords in settings.
    """
    yield from ({"type": "broker", **fields} for _, fields in sorted(image.brokers.items()))
    yield from ({"type": "controller", **fields} for _, fields in sorted(image.controllers.items()))
    for topic in sorted(image.topics.values(), key=lambda each: each.name):
        yield from _topic_lines(topic)
    yield from _config_lines(image, with_secrets=with_secrets)
    yield from _quota_lines(image)
    yield from map(_acl_line, image.acls.values())
    for fields in image.scram_credentials.values():
        yield _scram_line(fields, with_secrets=with_secrets)
    yield from ({"type": "delegationToken", **fields} for fields in image.delegation_tokens.values())


def _topic_lines(topic: TopicImage) -> Iterator[Line]:
    yield {
        "type": "topic",
        "topic": topic.name,
        "topicId": None if topic.topic_id == topic.name else topic.topic_id,
        "partitionCount": max(topic.partitions, default=-1) + 1,
    }
    for number, fields in sorted(topic.partitions.items()):
        shown: Line = {name: fields[name] for name in SHOWN_OF_PARTITION if name in fields}
        yield {"type": "partition", "topic": topic.name, "partition": number, **shown}


def _config_lines(image: MetadataImage, *, with_secrets: bool) -> Iterator[Line]:
    for resource, values in sorted(image.configs.items()):
        owner = {"resourceType": name_of(CONFIG_RESOURCES, resource.resource_type), "resourceName": resource.name}
        for name, value in sorted(values.items()):
            is_hidden = not with_secrets and is_secret(name)
            yield {"type": "config", **owner, "name": name, "value": HIDDEN if is_hidden else value}


def is_secret(name: str) -> bool:
    """Return whether the value of a setting is secret, by the name of the setting."""
    return any(each in name for each in SECRET_SETTINGS)


def _quota_lines(image: MetadataImage) -> Iterator[Line]:
    for entity, values in image.quotas.items():
        for key, value in sorted(values.items()):
            yield {"type": "quota", "entity": dict(entity.parts), "key": key, "value": value}


def _acl_line(fields: Fields) -> Line:
    return {
        "type": "acl",
        "principal": fields["principal"],
        "host": fields["host"],
        "permission": name_of(PERMISSIONS, fields["permissionType"]),
        "operation": name_of(OPERATIONS, fields["operation"]),
        "resourceType": name_of(ACL_RESOURCES, fields["resourceType"]),
        "patternType": name_of(PATTERN_TYPES, fields["patternType"]),
        "resourceName": fields["resourceName"],
    }


def _scram_line(fields: Fields, *, with_secrets: bool) -> Line:
    line = {"type": "scramUser", **fields, "mechanism": name_of(MECHANISMS, fields["mechanism"])}
    return line if with_secrets else {name: value for name, value in line.items() if name not in SECRETS}


def replica_lines(replicas: Replicas) -> Iterator[Line]:
    """Yield the replicas of each partition in the directories."""
    for (topic, number), copies in replicas.items():
        for copy in copies:
            yield {
                "type": "replica",
                "topic": topic,
                "partition": number,
                "path": str(copy.path),
                "nodeId": copy.node_id,
                "topicId": copy.topic_id,
                "leaderEpoch": copy.leader_epoch,
                "logStartOffset": copy.log_start_offset,
                "logEndOffset": copy.log_end_offset,
                "size": copy.size,
                "missing": [gap.as_object() for gap in copy.gaps],
            }


def coordinator_lines(cluster: Cluster) -> Iterator[Line]:
    """Yield groups with their committed offsets and lag, transactions, and the start offsets of share groups."""
    state = cluster.coordinators
    for name, group in sorted(state.groups.items()):
        if group.type != "simple" or group.offsets:
            members = sorted(group.members)
            yield {"type": "group", "group": name, "groupType": group.type, "epoch": group.epoch, "members": members}
            yield from _committed_lines(cluster, name)
    yield from (transaction_line(name, fields) for name, fields in sorted(state.transactions.items()))
    yield from _share_lines(state)


def _committed_lines(cluster: Cluster, name: str) -> Iterator[Line]:
    offsets, lag = cluster.coordinators.groups[name].offsets, cluster.lag(name)
    for (topic, number), committed in sorted(offsets.items()):
        yield {
            "type": "committedOffset",
            "group": name,
            "topic": topic,
            "partition": number,
            "offset": committed.offset,
            "lag": lag[topic, number],
            "leaderEpoch": committed.leader_epoch,
            "metadata": committed.metadata,
            "commitTimestamp": committed.commit_timestamp_ms,
        }


def transaction_line(name: str, fields: Fields) -> Line:
    """Return the line about a transaction, from the latest record of its transactional id."""
    state = transaction_state(fields)
    shown = {each: fields[each] for each in ("producerId", "producerEpoch", "transactionTimeoutMs")}
    partitions = fields["transactionPartitions"] or []
    return {
        "type": "transaction",
        "transactionalId": name,
        "state": state,
        "isOpen": state in OPEN_STATES,
        **shown,
        "partitions": {each["topic"]: each["partitionIds"] for each in partitions},
    }


def _share_lines(state: CoordinatorState) -> Iterator[Line]:
    for (group, topic_id, number), offset in sorted(state.share_offsets.items()):
        yield {"type": "shareOffset", "group": group, "topicId": topic_id, "partition": number, "startOffset": offset}


def problem_lines(cluster: Cluster, state: MetadataState | None) -> Iterator[Line]:
    """Yield a line for each part that could not be read, and that the other lines lack."""
    problems = [*(() if state is None else state.problems), *cluster.coordinators.problems]
    for copy in chain.from_iterable(cluster.replicas.values()):
        problems += [f"{copy.path}: {text}" for text in (copy.damage, *(gap.span_text for gap in copy.gaps)) if text]
    problems += [
        str(each) for directory in cluster.directories.directories for each in start_problems(directory.listing)
    ]
    if len(cluster.cluster_ids) > 1:
        named = "; ".join(f"{each} ({', '.join(map(str, paths))})" for each, paths in cluster.cluster_ids.items())
        problems.append(f"directories of several clusters: {named}")
    yield from ({"type": "problem", "text": problem} for problem in problems)


# -- the state of group and transaction coordinators, from their topics, which are replayed as a coordinator does ------


OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""States of a transaction whose end markers are not yet in all partitions."""

GROUP_TYPES: Final = {
    "groupMetadata": "classic",
    "consumerGroupMetadata": "consumer",
    "shareGroupMetadata": "share",
    "streamsGroupMetadata": "streams",
}
"""Type of a group, by the type of the record that creates it."""

MEMBER_RECORDS: Final = frozenset(
    {"consumerGroupMemberMetadata", "shareGroupMemberMetadata", "streamsGroupMemberMetadata"}
)

Decoded: TypeAlias = "Mapping[str, Any]"


class CommittedOffset(NamedTuple):
    """A position that a group committed.

    Attributes:
        offset: the next offset that the group reads.
        leader_epoch: of the last consumed record; -1 if unknown.
        metadata: text that the consumer added.
        commit_timestamp_ms: time of the commit.
        topic_id: of the topic; empty if the record has none.
        record_offset: offset of the record with the commit.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    topic_id: str
    record_offset: int


@dataclass(slots=True)
class Group:
    """A group and its committed positions.

    Attributes:
        type: ``classic``, ``consumer``, ``share`` or ``streams``; ``simple`` for offsets without a group record.
        epoch: generation of a classic group, or epoch of any other group; -1 if unknown.
        protocol_type: of a classic group.
        members: ids of the members, as last written.
        offsets: committed positions by topic and partition.
    """

    type: str = "simple"
    epoch: int = -1
    protocol_type: str = ""
    members: set[str] = field(default_factory=set)
    offsets: dict[tuple[str, int], CommittedOffset] = field(default_factory=dict)


@dataclass(slots=True)
class CoordinatorState:
    """Groups, transactions and the start offsets of share groups.

    Attributes:
        groups: by group id.
        transactions: fields of the latest record, by transactional id.
        share_offsets: start offsets of share groups, by group, topic id and partition.
        problems: descriptions of what could not be read.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    share_offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def replay(self, topic: str, batches: Iterable[RecordBatch]) -> None:
        """Replay one partition of a coordinator's topic; damage ends the replay, and is added to `problems`."""
        try:
            for record in decided_records(batches):
                self._apply(decode_coordinator_record(topic, record.key, record.value), record.offset)
        except FormatError as error:
            self.problems.append(str(error))

    def _apply(self, decoded: Decoded, record_offset: int) -> None:
        kind, value = decoded["type"], decoded.get("value")
        if isinstance(value, dict) and "unknownVersion" in value:
            self.problems.append(f"{kind} has version {value['unknownVersion']}, from a later release of Kafka")
        elif kind == "offsetCommit":
            self._commit(decoded["key"], value, record_offset)
        elif kind in GROUP_TYPES:
            self._group(GROUP_TYPES[kind], decoded["key"], value)
        elif kind in MEMBER_RECORDS:
            self._member(decoded["key"], value)
        elif kind == "transactionState":
            self._transaction(decoded["key"]["transactionalId"], value)
        elif kind in {"shareSnapshot", "shareUpdate"}:
            self._share(decoded["key"], value)

    def _commit(self, key: Decoded, value: Decoded | None, record_offset: int) -> None:
        offsets = self.groups.setdefault(key["group"], Group()).offsets
        partition = (key["topic"], key["partition"])
        known = offsets.get(partition)
        if known is not None and known.record_offset > record_offset:
            return  # the end of a transaction does not replace later commits
        if value is None:
            offsets.pop(partition, None)
        else:
            offsets[partition] = _committed(value, record_offset)

    def _group(self, kind: str, key: Decoded, value: Decoded | None) -> None:
        name = key["group"] if kind == "classic" else key["groupId"]
        if value is None:
            self._forget(name, kind)
            return
        group = self.groups.setdefault(name, Group())
        group.type = kind
        group.epoch = value["generation"] if kind == "classic" else value["epoch"]
        group.protocol_type = value.get("protocolType") or ""
        if kind == "classic":
            group.members = {member["memberId"] for member in value["members"]}

    def _forget(self, name: str, kind: str) -> None:
        group = self.groups.get(name)
        if group is not None and group.type == kind:
            group.type, group.epoch, group.members = "simple", -1, set()

    def _member(self, key: Decoded, value: Decoded | None) -> None:
        members = self.groups.setdefault(key["groupId"], Group()).members
        if value is None:
            members.discard(key["memberId"])
        else:
            members.add(key["memberId"])

    def _transaction(self, name: str, value: Decoded | None) -> None:
        if value is None:
            self.transactions.pop(name, None)
        else:
            self.transactions[name] = dict(value)

    def _share(self, key: Decoded, value: Decoded | None) -> None:
        partition = (key["groupId"], key["topicId"], key["partition"])
        if value is None:
            self.share_offsets.pop(partition, None)
        elif value["startOffset"] >= 0:
            self.share_offsets[partition] = value["startOffset"]


def _committed(value: Decoded, record_offset: int) -> CommittedOffset:
    return CommittedOffset(
        value["offset"],
        value.get("leaderEpoch", -1),
        value["metadata"],
        value.get("commitTimestamp", NO_TIMESTAMP),
        value.get("topicId", ""),
        record_offset,
    )


def decided_records(batches: Iterable[RecordBatch]) -> Iterator[Record | Message]:
    """Yield the records that a coordinator applies; it applies those of a transaction when it is committed.

    Unlike a read_committed consumer, a coordinator does not stop at an open transaction.

    Raises:
        FormatError: while iterating: at the first entry that is damaged.
    """
    pending: dict[int, list[Record | Message]] = {}
    for batch in batches:
        header = batch.header
        if getattr(header, "is_control", False):
            records = pending.pop(header.producer_id, [])
            if _is_commit(batch):
                yield from records
        elif getattr(header, "is_transactional", False):
            pending.setdefault(header.producer_id, []).extend(batch.records)
        else:
            yield from batch.records


def _is_commit(batch: RecordBatch) -> bool:
    at = Location(position=batch.position)
    markers = (decode_control_record(record.key, record.value, at) for record in batch.records)
    return any(marker.type is ControlRecordType.COMMIT for marker in markers)


def transaction_state(fields: Decoded) -> str:
    """Return the name of a transaction's state; the number of an unknown one."""
    number = fields["transactionStatus"]
    return TRANSACTION_STATES[number] if 0 <= number < len(TRANSACTION_STATES) else str(number)


# -- a cluster, read from the log directories of its brokers -----------------------------------------------------------


RENAMED: Final = ("stray", "delete", "future")
"""States of renamed partition directories: the topic is unknown or deleted, or the partition moves to another disk."""


class Cluster:
    """A cluster, read from the log directories of its brokers. No file is created, repaired or locked.

    Attributes:
        directories: the log directories, in the order given.
        renamed: states of renamed directories that also count as replicas: ``delete``, ``future``, ``stray``.
        chosen_id: id of the cluster whose metadata is used; None for any.
    """

    def __init__(
        self, directories: LogDirectories, *, renamed: Collection[str] = (), chosen_id: str | None = None
    ) -> None:
        self.directories = directories
        self.renamed = frozenset(renamed)
        self.chosen_id = chosen_id

    @cached_property
    def properties(self) -> Mapping[Path, MetaProperties | None]:
        """The content of `meta.properties` by directory: broker and cluster that the directory belongs to."""
        return {each.path: meta_properties_of(each.path) for each in self.directories.directories}

    @property
    def cluster_id(self) -> str | None:
        """Id of the cluster; None if no directory has one. If there are several (see `cluster_ids`), the first."""
        return self.chosen_id or next(iter(self.cluster_ids), None)

    @cached_property
    def cluster_ids(self) -> Mapping[str, tuple[Path, ...]]:
        """The directories by cluster id; several ids mean that these are directories of several clusters."""
        found: dict[str, tuple[Path, ...]] = {}
        for path, each in self.properties.items():
            if each is not None and each.cluster_id is not None:
                found[each.cluster_id] = (*found.get(each.cluster_id, ()), path)
        return found

    @cached_property
    def metadata_logs(self) -> tuple[MetadataLog, ...]:
        """The copies of the metadata log."""
        keys = [(topic, 0) for topic in sorted(METADATA_TOPICS)]
        entries = (each.partitions.get(key) for each in self._directories_of_cluster() for key in keys)
        return tuple(MetadataLog(entry.path) for entry in entries if entry is not None)

    def _directories_of_cluster(self) -> Iterator[LogDirectory]:
        for each in self.directories.directories:
            properties = self.properties[each.path]
            if self.chosen_id is None or properties is None or properties.cluster_id in {None, self.chosen_id}:
                yield each

    def metadata(self, *, at_offset: int | None = None, at_time_ms: int | None = None) -> MetadataState | None:
        """Replay the metadata log, from the replica that an election would prefer.

        Args:
            at_offset: the last record to replay; all by default.
            at_time_ms: leave out records that were written later.

        Returns:
            The state from the replica with the highest epoch, and among those the longest; replicas without the start
            of the log come last. None without a metadata log: it is lost, or the cluster used ZooKeeper.
        """
        states = (log.state(at_offset=at_offset, at_time_ms=at_time_ms) for log in self.metadata_logs)
        return max(states, key=lambda state: (not state.has_gap, state.epoch, state.end_offset), default=None)

    def _bootstrap_image(self) -> MetadataImage:
        """Return the image of the bootstrap snapshot that formatting a KRaft broker writes: features, SCRAM users."""
        files = (each.listing.root_files.get(FileKind.BOOTSTRAP_SNAPSHOT) for each in self._directories_of_cluster())
        states = (snapshot_state(path) for path in files if path is not None)
        return next((state.image for state in states if not state.problems), MetadataImage())

    @cached_property
    def replicas(self) -> Replicas:
        """The replicas of each partition except the metadata log, by topic and number."""
        found: dict[TopicPartition, list[Replica]] = {}
        for directory in self.directories.directories:
            for entry in self._entries(directory):
                found.setdefault(entry.name.topic_partition, []).append(self._replica(directory, entry))
        return {key: tuple(copies) for key, copies in sorted(found.items())}

    def _entries(self, directory: LogDirectory) -> Iterator[PartitionEntry]:
        renamed = (entry for state in sorted(self.renamed) for entry in directory.renamed(state))
        known = (entry for entry in renamed if not entry.name.is_topic_cut)
        entries = chain(directory.partitions.values(), known)
        return (entry for entry in entries if entry.name.topic not in METADATA_TOPICS)

    @cached_property
    def left_out(self) -> tuple[PartitionEntry, ...]:
        """Renamed directories that do not count as replicas."""
        entries = (entry for state in RENAMED for entry in self.directories.renamed(state))
        return tuple(each for each in entries if each.name.state not in self.renamed or each.name.is_topic_cut)

    def _replica(self, directory: LogDirectory, entry: PartitionEntry) -> Replica:
        properties = self.properties[directory.path]
        node_id, directory_id = (None, None) if properties is None else (properties.node_id, properties.directory_id)
        start, end, size, damage = 0, None, 0, ""
        gaps: tuple[Gap, ...] = ()
        try:
            with directory.open(entry) as partition:
                start, size = partition.log_start_offset, sum(segment.size for segment in partition.segments)
                end = partition.log_end_offset
                gaps = () if entry.name.state else partition.missing_offsets
        except SeglogError as error:
            damage = str(error)
        epochs = leader_epochs_of(entry.path)
        copy = Replica(entry.path, node_id, topic_id_of(entry.path), epochs, start, end, size, damage)
        copy = copy._replace(state=entry.name.state, directory_id=directory_id, known_epochs=epochs)
        if entry.name.state:  # the checkpoints are about the directory that has the topic's name
            return copy
        key = entry.name.topic_partition
        high_watermark, recovery_point = directory.high_watermarks.get(key, 0), directory.recovery_point(key)
        return copy._replace(high_watermark=high_watermark, recovery_point=recovery_point, gaps=gaps)

    @cached_property
    def coordinators(self) -> CoordinatorState:
        """Groups, transactions and share groups, from the replica of each partition that an election keeps."""
        state = CoordinatorState()
        for topic, number in self.replicas:
            chosen = self.chosen((topic, number)) if topic in COORDINATOR_TOPICS else None
            if chosen is not None:
                try:
                    with open_partition(chosen.path) as partition:
                        state.replay(topic, partition.batches())
                except (UsageError, FormatError) as error:
                    state.problems.append(str(error))
        return state

    def chosen(self, key: TopicPartition) -> Replica | None:
        """Return the readable replica of a partition that an election keeps, as far as small files show; or None."""
        copies = [copy for copy in self.replicas.get(key, ()) if copy.log_end_offset is not None]
        topic = self._image.topic_named(key[0])
        return Election(copies, {} if topic is None else topic.partitions.get(key[1], {})).chosen if copies else None

    @cached_property
    def _image(self) -> MetadataImage:
        return self.image()

    def image(self, *, at_offset: int | None = None, at_time_ms: int | None = None) -> MetadataImage:
        """Return the image of `metadata`; without a metadata log, an image of the topics that have directories."""
        state = self.metadata(at_offset=at_offset, at_time_ms=at_time_ms)
        if state is not None:
            return state.image
        image, formatted = image_of(self.replicas), self._bootstrap_image()
        image.features, image.scram_credentials = formatted.features, formatted.scram_credentials
        return image

    def lag(self, group: str) -> dict[TopicPartition, int | None]:
        """Return the lag of a group: for each committed position, the number of offsets up to the log end offset.

        Returns:
            The lag by topic and partition; None if no directory has the log.

        Raises:
            KeyError: there is no such group.
        """
        offsets = self.coordinators.groups[group].offsets
        return {key: self._distance(key, committed.offset) for key, committed in sorted(offsets.items())}

    def _distance(self, key: TopicPartition, offset: int) -> int | None:
        chosen = self.chosen(key)
        return None if chosen is None else max((chosen.log_end_offset or 0) - offset, 0)


def best_of(copies: Sequence[Replica]) -> Replica:
    """Return the readable replica that an election keeps if the metadata do not say who may lead."""
    return Election(copies, {}).chosen


def image_of(replicas: Replicas) -> MetadataImage:
    """Return an image of the topics and partitions that have directories, for clusters without metadata.

    A topic has all partitions up to the highest number seen; a topic without an id is identified by its name. If
    several topics had the same name, the topic whose directories have the most bytes is used.
    """
    image = MetadataImage()
    ids = _topic_ids(replicas)
    for (name, number), copies in replicas.items():
        topic_id = ids.get(name, name)
        topic = image.topics.setdefault(topic_id, TopicImage(name, topic_id))
        nodes = sorted({copy.node_id for copy in copies if copy.node_id is not None})
        topic.partitions[number] = {
            "partitionId": number,
            "topicId": topic_id,
            "replicas": nodes,
            "leaderEpoch": max(copy.leader_epoch for copy in copies),
        }
    return image


def _topic_ids(replicas: Replicas) -> dict[str, str]:
    sizes: dict[str, dict[str, int]] = {}
    for (name, _), copies in replicas.items():
        for copy in copies:
            if copy.topic_id:
                found = sizes.setdefault(name, {})
                found[copy.topic_id] = found.get(copy.topic_id, 0) + copy.size
    return {name: max(found, key=found.__getitem__) for name, found in sizes.items()}


def open_cluster(
    path_or_paths: PathOrPaths, *, renamed: Collection[str] = (), cluster_id: str | None = None
) -> Cluster:
    """Open the log directories of one or several brokers, to read the state of their cluster.

    Args:
        path_or_paths: path of a log directory, or paths of several; of one broker or of several.
        renamed: states of renamed directories to use also: ``stray``, ``delete``, ``future``.
        cluster_id: id of the cluster whose metadata is used, if the directories have several ids.

    Raises:
        UsageError: a path is not a log directory, or cannot be read.

    Examples:
        >>> from seglog_format import open_cluster
        >>> cluster = open_cluster("demo/kafka-4.3.0")
        >>> image = cluster.image()
        >>> image.features["metadata.version"], image.topic_named("txn").partitions[0]["leaderEpoch"]
        (30, 0)
        >>> cluster.metadata().end_offset
        596
    """
    return Cluster(open_log_directory(path_or_paths), renamed=renamed, chosen_id=cluster_id)
