"""The metadata image of a cluster, and which features and settings each release of Kafka accepts.

An image is the state after the records of a metadata log have been replayed. It holds the same fields as the records of
a snapshot, by Kafka's names. So an image can be written as a snapshot, and replaying the snapshot gives the same image.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.state.config import LogConfig, topic_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


Fields: TypeAlias = dict[str, Any]
"""Fields of a record by Kafka's names, as JSON types."""

NO_PRODUCER_ID: Final = -1
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
ALL_BROKERS: Final = ""
"""Name of the broker resource whose settings are the defaults of all brokers."""


class ConfigResource(NamedTuple):
    """The resource that settings belong to."""

    resource_type: int
    name: str


class QuotaEntity(NamedTuple):
    """The clients that a quota limits: pairs of entity type and name, sorted by type; None as name is the default."""

    parts: tuple[tuple[str, str | None], ...]


class ImageRecord(NamedTuple):
    """One record of a snapshot: its type by Kafka's name, and its fields."""

    type: str
    fields: Fields


@dataclass(slots=True)
class TopicImage:
    """A topic and its partitions.

    Attributes:
        name: of the topic.
        topic_id: 22 letters of base64url.
        partitions: fields of a `PartitionRecord`, by partition number.
    """

    name: str
    topic_id: str
    partitions: dict[int, Fields] = field(default_factory=dict)


@dataclass(slots=True)
class MetadataImage:
    """The state of a cluster.

    Attributes:
        features: level of each feature, ``metadata.version`` included.
        brokers: fields of a `RegisterBrokerRecord`, by broker id.
        controllers: fields of a `RegisterControllerRecord`, by controller id.
        topics: by topic id.
        configs: for each resource, values by name; a resource without values is absent.
        quotas: for each entity, values by name; an entity without values is absent.
        next_producer_id: the first producer id that was not assigned to a broker; `NO_PRODUCER_ID` if none was.
        acls: fields of an `AccessControlEntryRecord`, by id.
        scram_credentials: fields of a `UserScramCredentialRecord`, by user and mechanism.
        delegation_tokens: fields of a `DelegationTokenRecord`, by token id.
        zk_migration_state: state of a migration from ZooKeeper; 0 for none.
    """

    features: dict[str, int] = field(default_factory=dict)
    brokers: dict[int, Fields] = field(default_factory=dict)
    controllers: dict[int, Fields] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    next_producer_id: int = NO_PRODUCER_ID
    acls: dict[str, Fields] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, int], Fields] = field(default_factory=dict)
    delegation_tokens: dict[str, Fields] = field(default_factory=dict)
    zk_migration_state: int = 0

    def topic_named(self, name: str) -> TopicImage | None:
        """Return the topic with a name; None if there is none."""
        return next((topic for topic in self.topics.values() if topic.name == name), None)

    def topic_config(self, topic: str, node_id: int | None = None) -> dict[str, str]:
        """Return the settings that affect the files of a topic's logs, by the names of topic settings.

        A setting of the topic overrides that of the broker, which overrides the default of all brokers.

        Args:
            topic: its name.
            node_id: of the broker; None if it is not known.

        Raises:
            UsageError: a duration in the settings of a broker is not a number.
        """
        found: dict[str, str] = {}
        for name in (ALL_BROKERS, ALL_BROKERS if node_id is None else str(node_id)):
            found |= topic_settings(self.configs.get(ConfigResource(BROKER_RESOURCE, name), {}))
        found |= self.configs.get(ConfigResource(TOPIC_RESOURCE, topic), {})
        return {name: value for name, value in found.items() if LogConfig.has_setting(name)}

    def records(self) -> Iterator[ImageRecord]:
        """Yield the records of a snapshot of this image, in the order in which Kafka writes them."""
        yield from _feature_records(self)
        yield from (ImageRecord("REGISTER_BROKER_RECORD", each) for _, each in sorted(self.brokers.items()))
        yield from (ImageRecord("REGISTER_CONTROLLER_RECORD", each) for _, each in sorted(self.controllers.items()))
        yield from _topic_records(self)
        yield from _config_records(self)
        yield from _quota_records(self)
        if self.next_producer_id >= 0:
            fields = {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": self.next_producer_id}
            yield ImageRecord("PRODUCER_IDS_RECORD", fields)
        yield from (ImageRecord("ACCESS_CONTROL_ENTRY_RECORD", each) for each in self.acls.values())
        yield from (ImageRecord("USER_SCRAM_CREDENTIAL_RECORD", each) for each in self.scram_credentials.values())
        yield from (ImageRecord("DELEGATION_TOKEN_RECORD", each) for each in self.delegation_tokens.values())


METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
ELR_FIELDS: Final = frozenset({"eligibleLeaderReplicas", "lastKnownElr"})
"""Fields of a partition that a snapshot holds only if the feature is in use."""


def _feature_records(image: MetadataImage) -> Iterator[ImageRecord]:
    for name in sorted(image.features, key=lambda each: (each != METADATA_VERSION, each)):
        yield ImageRecord("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": image.features[name]})
    if image.zk_migration_state:
        yield ImageRecord("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": image.zk_migration_state})


def _topic_records(image: MetadataImage) -> Iterator[ImageRecord]:
    left_out = frozenset() if image.features.get(ELR_VERSION) else ELR_FIELDS
    for topic in image.topics.values():
        yield ImageRecord("TOPIC_RECORD", {"name": topic.name, "topicId": topic.topic_id})
        for _, fields in sorted(topic.partitions.items()):
            kept = {name: value for name, value in fields.items() if name not in left_out}
            yield ImageRecord("PARTITION_RECORD", kept)


def _config_records(image: MetadataImage) -> Iterator[ImageRecord]:
    for resource, values in image.configs.items():
        for name, value in sorted(values.items()):
            fields = {"resourceType": resource.resource_type, "resourceName": resource.name}
            yield ImageRecord("CONFIG_RECORD", {**fields, "name": name, "value": value})


def _quota_records(image: MetadataImage) -> Iterator[ImageRecord]:
    for entity, values in image.quotas.items():
        parts = [{"entityType": kind, "entityName": name} for kind, name in entity.parts]
        for key, value in sorted(values.items()):
            fields = {"entity": parts, "key": key, "value": value, "remove": False}
            yield ImageRecord("CLIENT_QUOTA_RECORD", fields)


# -- the features and settings that each release of Kafka accepts ------------------------------------------------------


LOWEST_METADATA_VERSION: Final = 21
"""Level of 3.9, which 4.1 and 4.4 also accept; a new node gets this level or a higher one."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release that a node can be written for.

    Attributes:
        version: such as ``4.4``.
        features: the highest accepted level of each feature; the release does not start with higher ones.
        least_settings: the lowest accepted values of settings of topics and of brokers; the release does not
            start with a lower one of a topic.
        least_features: the lowest accepted levels; the release does not start with lower ones.
        has_zookeeper: whether its brokers may be in a cluster with ZooKeeper.
    """

    version: str
    features: Mapping[str, int]
    least_settings: Mapping[str, int] = field(default_factory=dict)
    least_features: Mapping[str, int] = field(default_factory=dict)
    has_zookeeper: bool = False


SINCE_4_0: Final = {"segment.bytes": 1 << 20, "log.segment.bytes": 1 << 20}
LEVELS_SINCE_4_0: Final = {METADATA_VERSION: 7}

RELEASES: Final = {
    release.version: release
    for release in (
        Release("3.9", {METADATA_VERSION: 21}, has_zookeeper=True),
        Release(
            "4.1",
            {
                METADATA_VERSION: 27,
                "transaction.version": 2,
                "group.version": 1,
                "eligible.leader.replicas.version": 1,
                "share.version": 1,
            },
            SINCE_4_0,
            LEVELS_SINCE_4_0,
        ),
        Release(
            "4.4",
            {
                METADATA_VERSION: 33,
                "transaction.version": 2,
                "group.version": 1,
                "eligible.leader.replicas.version": 1,
                "share.version": 2,
                "streams.version": 1,
            },
            SINCE_4_0,
            LEVELS_SINCE_4_0,
        ),
    )
}
"""Releases by version, oldest first. The levels are constants in the classes of each release."""

NEWEST: Final = next(reversed(RELEASES))


GROUP_FEATURES: Final = {"consumer": "group.version", "share": "share.version", "streams": "streams.version"}
"""The feature that each type of group needs."""

NEEDED_FOR: Final = {
    METADATA_VERSION: "settings and records of later releases",
    "transaction.version": "the later protocol of transactions; transactions and their states stay",
    "group.version": "members of groups of the new protocol; their committed offsets stay",
    "eligible.leader.replicas.version": "eligible leader replicas, of which a single node has none",
    "share.version": "share groups and their start offsets",
    "streams.version": "streams groups; their committed offsets stay",
}
"""What is lost if the level of a feature is lowered."""


def losses_without(features: Mapping[str, int]) -> str:
    """Return a text of features with their levels, and what is lost if each is lowered."""
    named = (f"{name} {level}" + _needed(name) for name, level in sorted(features.items()))
    return "; ".join(named)


def _needed(name: str) -> str:
    return f" ({NEEDED_FOR[name]})" if name in NEEDED_FOR else ""


def too_high(features: Mapping[str, int], release: Release) -> dict[str, int]:
    """Return the features whose levels a release does not accept, with these levels."""
    return {name: level for name, level in features.items() if level > release.features.get(name, 0)}


def too_low(features: Mapping[str, int], release: Release) -> dict[str, int]:
    """Return the features whose levels a release no longer accepts, with these levels."""
    return {name: level for name, level in features.items() if level < release.least_features.get(name, 0)}
