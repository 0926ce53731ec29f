"""The metadata image of the single node that replaces a cluster: what is kept, and what is changed for safety."""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.cluster.comparison import Election
from seglog_format.cluster.image import METADATA_VERSION, TOPIC_RESOURCE, ConfigResource, MetadataImage, TopicImage
from seglog_format.cluster.releases import LOWEST_METADATA_VERSION, NEEDED_FOR, losses_without, too_high
from seglog_format.cluster.replica_lines import choice_text
from seglog_format.errors import UsageError
from seglog_format.model import INT32_MAX
from seglog_format.names import COORDINATOR_TOPICS, is_text

if TYPE_CHECKING:
    from seglog_format.cluster.comparison import Replica, Replicas
    from seglog_format.cluster.image import Fields
    from seglog_format.cluster.releases import Release
    from seglog_format.log.directory import TopicPartition

BROKER_RESOURCE: Final = 4

MAX_PARTITIONS: Final = 100_000
"""Partition numbers from here on count as damage, because every number below the highest one becomes a partition."""

NAMESPACE: Final = uuid.UUID("0c1d9c5e-6f0a-4e43-9a3c-5d1f4f0f2f7e")
"""Namespace of ids that are generated for topics without one: the same name always gives the same id."""

RETENTION: Final = ("retention.ms", "retention.bytes")
"""Settings that would make the first start delete old segments; with -1 all are kept."""

NO_SUCH_NAME: Final = "left out: no topic can have this name (SEG-PDR-002)"

MIN_ISR: Final = "min.insync.replicas"

DROPPED_SETTINGS: Final = {
    "message.format.version": "Kafka 4 does not know it",
    "message.timestamp.difference.max.ms": "Kafka 4 does not know it",
    "message.downconversion.enable": "Kafka 4 does not know it",
    "remote.storage.enable": "the node has no remote store",
    "local.retention.ms": "it needs a remote store",
    "local.retention.bytes": "it needs a remote store",
}
"""Settings of topics that are left out, because the node would not start with them or cannot apply them, and why."""


class Note(NamedTuple):
    """A note on a difference from the old cluster, or on a loss.

    Attributes:
        about: a topic, a partition or a setting.
        text: what differs or is lost, and why.
    """

    about: str
    text: str


@dataclass(slots=True)
class NewImage:
    """The image of the new node, and the replicas that its logs come from.

    Attributes:
        image: of the node.
        logs: the chosen replica, by topic and partition.
        ends: log end offsets of logs that must end above what they hold, or offsets would be given twice.
        elections: the choice among the readable replicas of each partition.
        notes: differences from the old cluster.
        old_settings: old values of all settings that the node has otherwise, by topic, to restore them later.
    """

    image: MetadataImage
    logs: dict[TopicPartition, Replica] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    elections: dict[TopicPartition, Election] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    old_settings: dict[str, dict[str, str | None]] = field(default_factory=dict)

    def note(self, about: str, text: str) -> None:
        """Add a note."""
        self.notes.append(Note(about, text))


class NewNode(NamedTuple):
    """The node to write.

    Attributes:
        node_id: id of the node.
        directory_id: id of its log directory, 22 letters of base64url.
        release: of Kafka that will start on it.
        allows_downgrade: whether features may be lowered to the levels that the release accepts.
    """

    node_id: int
    directory_id: str
    release: Release
    allows_downgrade: bool = False


def made_id(name: str) -> str:
    """Return an id of 22 letters of base64url; the same name always gives the same id."""
    return base64.urlsafe_b64encode(uuid.uuid5(NAMESPACE, name).bytes).decode("ascii").rstrip("=")


def new_image(old: MetadataImage, replicas: Replicas, node: NewNode) -> NewImage:
    """Return the image of a node that holds the remaining topics of a cluster.

    Args:
        old: image of the cluster.
        replicas: of the partitions.
        node: the node to write.

    Raises:
        UsageError: the cluster used features that the release does not accept, and a downgrade is not allowed.
    """
    made = NewImage(MetadataImage())
    _take_features(made, old, node)
    for topic in sorted(old.topics.values(), key=lambda each: each.name):
        if not is_text(topic.name):
            made.note(topic.name, NO_SUCH_NAME)
            continue
        _take_topic(made, topic, replicas, node)
    _note_unknown_topics(made, old, replicas)
    _take_configs(made, old, node)
    _take_other_parts(made, old)
    return made


def _take_features(made: NewImage, old: MetadataImage, node: NewNode) -> None:
    high = too_high(old.features, node.release)
    if high and not node.allows_downgrade:
        msg = (
            f"the cluster used features that Kafka {node.release.version} does not accept, and would lose what is in"
            f" parentheses: {losses_without(high)}; choose a newer release, or allow a downgrade"
        )
        raise UsageError(msg)
    for name, level in old.features.items():
        accepted = min(level, node.release.features.get(name, 0))
        if accepted:
            made.image.features[name] = accepted
        if accepted != level:
            made.note(name, f"lowered from {level} to {accepted}; lost: {NEEDED_FOR.get(name, 'what needs it')}")
    level = made.image.features.get(METADATA_VERSION, 0)
    if level < LOWEST_METADATA_VERSION:
        made.image.features[METADATA_VERSION] = LOWEST_METADATA_VERSION
        if level:
            made.note(METADATA_VERSION, f"raised from {level} to {LOWEST_METADATA_VERSION}")


def _take_topic(made: NewImage, topic: TopicImage, replicas: Replicas, node: NewNode) -> None:
    topic_id = topic.topic_id
    if topic_id == topic.name:
        topic_id = made_id(topic.name)
    taken = made.image.topics[topic_id] = TopicImage(topic.name, topic_id)
    for number in range(_partition_count(made, topic, replicas)):
        fields = topic.partitions.get(number, {})
        chosen = _chosen(made, topic, number, replicas)
        known = (each.latest_epoch for each in replicas.get((topic.name, number), ()) if _is_of(each, topic))
        epoch = max(fields.get("leaderEpoch", -1), *known, -1)
        if epoch == INT32_MAX:
            made.note(f"{topic.name}-{number}", f"leader epoch {epoch} is the last one: no broker can be elected again")
        taken.partitions[number] = _partition(number, topic_id, min(epoch + 1, INT32_MAX), node)
        if chosen is not None:
            made.logs[topic.name, number] = chosen


def _is_of(copy: Replica, topic: TopicImage) -> bool:
    return copy.topic_id in {None, topic.topic_id}


def _partition_count(made: NewImage, topic: TopicImage, replicas: Replicas) -> int:
    """Return the number of partitions of a topic: those in the metadata, and those that only have a directory."""
    found = {
        number
        for (name, number), copies in replicas.items()
        if name == topic.name and any(_is_of(copy, topic) for copy in copies)
    }
    for number in sorted(found - topic.partitions.keys()):
        made.note(f"{topic.name}-{number}", "has a directory, but the metadata does not know it; taken")
    numbers = sorted(found | topic.partitions.keys())
    for number in numbers:
        if number >= MAX_PARTITIONS:
            made.note(f"{topic.name}-{number}", f"left out: a topic has at most {MAX_PARTITIONS:,} partitions here")
    return max((number for number in numbers if number < MAX_PARTITIONS), default=-1) + 1


def _chosen(made: NewImage, topic: TopicImage, number: int, replicas: Replicas) -> Replica | None:
    about, fields = f"{topic.name}-{number}", topic.partitions.get(number, {})
    copies = replicas.get((topic.name, number), ())
    same = [copy for copy in copies if _is_of(copy, topic)]
    for copy in copies:
        if copy not in same:
            made.note(about, f"{copy.path} belongs to another topic of this name, id {copy.topic_id}; left out")
    readable = [copy for copy in same if copy.log_end_offset is not None]
    for copy in same:
        if copy not in readable:
            made.note(about, f"{copy.path} cannot be read: {copy.damage}")
    if not readable:
        made.note(about, "no directory holds a readable log: the partition will be empty")
        return None
    election = made.elections[topic.name, number] = Election(readable, fields)
    chosen = election.chosen
    if chosen.damage:
        made.note(about, _damage_text(chosen, has_others=len(readable) > 1))
    _note_leaders(made, about, election, fields)
    for copy in readable:
        if copy is not chosen:
            made.note(about, choice_text(election, copy))
    return chosen


def _note_leaders(made: NewImage, about: str, election: Election, fields: Fields) -> None:
    """Note that no safe leader is here, or that the metadata do not know one."""
    safe = [*(fields.get("isr") or ()), *(fields.get("eligibleLeaderReplicas") or ())]
    if safe and election.is_outdated:
        known = max(copy.latest_epoch for copy in election.copies)
        text = (
            f"the metadata are older than the logs: they know leader epoch {fields.get('leaderEpoch', -1)}, and a log"
        )
        made.note(about, f"{text} {known}; who was in sync does not count")
    elif safe and not any(copy.node_id is None or election.listed(copy) for copy in election.copies):
        made.note(about, f"in sync were brokers {_listed(safe)}, and no log of theirs is here: {MAY_BE_MISSING}")


MAY_BE_MISSING: Final = "the last records may be missing"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _damage_text(chosen: Replica, *, has_others: bool) -> str:
    end = chosen.log_end_offset
    where = f"a broker would cut it at offset {end}" if chosen.cut else f"it ends at offset {end}"
    text = f"{chosen.path} is damaged: {chosen.damage}; {where}. The node gets every intact batch of it"
    return f"{text}{', and those that it lacks from the other replicas' if has_others else ''}"


def _partition(number: int, topic_id: str, leader_epoch: int, node: NewNode) -> Fields:
    return {
        "partitionId": number,
        "topicId": topic_id,
        "replicas": [node.node_id],
        "isr": [node.node_id],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": node.node_id,
        "leaderEpoch": leader_epoch,
        "partitionEpoch": 0,
        "directories": [node.directory_id],
    }


def _note_unknown_topics(made: NewImage, old: MetadataImage, replicas: Replicas) -> None:
    known = {topic.name for topic in old.topics.values()}
    for name in sorted({name for name, _ in replicas} - known):
        text = "has directories, but the metadata does not know it (deleted?); left out: --unknown-topics takes it"
        made.note(name, text)


# -- settings ----------------------------------------------------------------------------------------------------------


def _take_configs(made: NewImage, old: MetadataImage, node: NewNode) -> None:
    for resource, values in old.configs.items():
        if resource.resource_type == TOPIC_RESOURCE:
            continue
        if resource.resource_type == BROKER_RESOURCE and resource.name not in {"", str(node.node_id)}:
            made.note(f"broker {resource.name}", f"its settings are left out: {', '.join(sorted(values))}")
        else:
            made.image.configs[resource] = _writable(made, resource, values, node.release)
    for topic in made.image.topics.values():
        resource = ConfigResource(TOPIC_RESOURCE, topic.name)
        values = _safe_settings(made, topic.name, old.configs.get(resource, {}), node.release)
        if values:
            made.image.configs[resource] = values


def _writable(made: NewImage, resource: ConfigResource, old: dict[str, str], release: Release) -> dict[str, str]:
    """Return settings of brokers that the node accepts, and that allow writing with one replica.

    Topics without the settings inherit these.
    """
    values = dict(old)
    if resource.resource_type == BROKER_RESOURCE and _number(values, MIN_ISR, 1) > 1:
        values[MIN_ISR] = "1"
        made.note("brokers", f"{MIN_ISR}={old[MIN_ISR]} becomes 1: the node is on its own")
    raised = _too_low(values, release) if resource.resource_type == BROKER_RESOURCE else {}
    for name, least in raised.items():
        made.note("brokers", f"{name}={old[name]} becomes {least}: Kafka {release.version} accepts no less")
    return values | raised


def _too_low(values: dict[str, str], release: Release) -> dict[str, str]:
    """Return the least value of each setting that is below what a release accepts."""
    least_settings = release.least_settings.items()
    return {name: str(least) for name, least in least_settings if _number(values, name, least) < least}


def _safe_settings(made: NewImage, topic: str, old: dict[str, str], release: Release) -> dict[str, str]:
    """Return settings of a topic with which the node starts, accepts writes, and deletes nothing at the first start.

    A coordinator's topic that is only compacted keeps its retention: a broker does not apply it.
    """
    values = {name: value for name, value in old.items() if name not in DROPPED_SETTINGS}
    for name in old.keys() & DROPPED_SETTINGS.keys():
        made.note(topic, f"{name}={old[name]} is left out: {DROPPED_SETTINGS[name]}")
    is_kept = topic in COORDINATOR_TOPICS and values.get("cleanup.policy") == "compact"
    wanted = {} if is_kept else dict.fromkeys(RETENTION, "-1")
    if _number(values, MIN_ISR, 1) > 1:
        wanted[MIN_ISR] = "1"
    values |= wanted | _too_low(values, release)
    changed = {name: old.get(name) for name in old | values if old.get(name) != values.get(name)}
    if changed:
        made.old_settings[topic] = changed
    return values


def _number(values: dict[str, str], name: str, default: int) -> int:
    """Return a setting as a number; the default if it is absent or not a number."""
    text = values.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else default


def _take_other_parts(made: NewImage, old: MetadataImage) -> None:
    made.image.quotas = {entity: dict(values) for entity, values in old.quotas.items()}
    made.image.acls = dict(old.acls)
    made.image.scram_credentials = dict(old.scram_credentials)
    made.image.next_producer_id = old.next_producer_id
    if old.delegation_tokens:
        made.note("delegation tokens", f"{len(old.delegation_tokens)} left out: they need the old master key")
