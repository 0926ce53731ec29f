"""The metadata image of the single node that replaces a cluster: kept, changed for safety, or inferred."""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass, field
from math import gcd
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.cluster.cluster import best_of, image_of
from seglog_format.cluster.comparison import Election, choice_text
from seglog_format.cluster.image import (
    LOWEST_METADATA_VERSION,
    METADATA_VERSION,
    NEEDED_FOR,
    TOPIC_RESOURCE,
    ConfigResource,
    MetadataImage,
    TopicImage,
    losses_without,
    too_high,
)
from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.partition import open_partition
from seglog_format.model import INT32_MAX
from seglog_format.names import (
    CONSUMER_OFFSETS,
    COORDINATOR_TOPICS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    is_legal_topic,
    is_text,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.comparison import Replica, Replicas
    from seglog_format.cluster.image import Fields, Release
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


# -- what is inferred where the metadata are silent: topics; partitions and settings of the coordinators' topics -------


DEFAULT_COUNT: Final = 50
"""Kafka's default number of partitions of these topics."""

MAX_COUNT: Final = 10_000
"""Maximum number of partitions that is tried."""

MAX_KEYS: Final = 10_000
"""Maximum number of keys that are read in one partition."""

COINCIDENCE: Final = 1e-4
"""Names that also fit a greater number show it, if such names come by coincidence in so small a share of clusters."""

LEAST_COMPLETE: Final = 4
"""Fewer directories, numbered from 0 without a gap, do not show that these were all: there may have been more."""

KEY_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    CONSUMER_OFFSETS: ("group", "groupId"),
    TRANSACTION_STATE: ("transactionalId",),
    SHARE_GROUP_STATE: ("groupId", "topicId", "partition"),
}
"""Fields of a record's key that decide its partition; in the first topic a key has one of the two fields."""

DEFAULT_SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    CONSUMER_OFFSETS: {"cleanup.policy": "compact"},
    TRANSACTION_STATE: {"cleanup.policy": "compact"},
    SHARE_GROUP_STATE: {"cleanup.policy": "delete", "retention.ms": "-1"},
}
"""Of the settings with which a stock broker creates these topics, those that decide which records it keeps."""

HOW_TO_OVERRULE: Final = "--partitions {topic}=N overrules it"


class Count(NamedTuple):
    """An inferred number of partitions.

    Attributes:
        number: of partitions.
        is_guess: whether another number is as possible.
        reason: why this number, as text; empty if the directories themselves show it.
    """

    number: int
    is_guess: bool
    reason: str


# -- inferred topics ---------------------------------------------------------------------------------------------------


def leave_out_refused(image: MetadataImage) -> list[Note]:
    """Leave out the topics of a metadata log whose names no broker accepts (SEG-PDR-002).

    Returns:
        A note on each. Its directories then count as those of an unknown topic.
    """
    refused = [topic for topic in image.topics.values() if not is_legal_topic(topic.name)]
    for topic in refused:
        del image.topics[topic.topic_id]
    return [Note(topic.name, NO_SUCH_NAME) for topic in refused]


def add_unknown_topics(image: MetadataImage, replicas: Replicas) -> list[str]:
    """Add the topics that only have directories, including topics with the name of another topic in the metadata.

    In the latter case the topic with directories replaces the other topic, unless that one also has records.

    Returns:
        The names of the topics that were added.
    """
    named = {topic.name: topic for topic in image.topics.values()}
    added = []
    for topic in image_of(replicas).topics.values():
        known = named.get(topic.name)
        if known is not None and known.topic_id != topic.topic_id and not _has_records(known, replicas):
            image.topics.pop(known.topic_id, None)
            known = None
        if known is None:
            image.topics[topic.topic_id] = topic
            added.append(topic.name)
    return added


def _has_records(topic: TopicImage, replicas: Replicas) -> bool:
    copies = (copy for (name, _), found in replicas.items() if name == topic.name for copy in found)
    return any(copy.topic_id in {None, topic.topic_id} and copy.log_end_offset != 0 for copy in copies)


def complete_topics(
    image: MetadataImage, cluster: Cluster, replicas: Replicas, topics: Collection[str] | None, given: Mapping[str, int]
) -> list[Note]:
    """Add what the metadata do not say of the coordinators' topics.

    Args:
        image: changed in place.
        cluster: the old cluster; the checkpoints of its log directories list partitions that it had.
        replicas: of the partitions.
        topics: names of topics that are not in the metadata; None without metadata.
        given: numbers of partitions by topic, which overrule what is inferred.

    Returns:
        Notes on what is missing, and on each guess.

    Raises:
        UsageError: a given number of partitions is not possible; see `add_missing_partitions`.
    """
    notes = add_missing_partitions(image, replicas, topics, listed=listed_counts(cluster), given=given)
    return notes + guess_settings(image, topics)


# -- inferred settings -------------------------------------------------------------------------------------------------


def guess_settings(image: MetadataImage, topics: Collection[str] | None) -> list[Note]:
    """Give the coordinators' topics that are not in the metadata the cleanup policy with which Kafka creates them.

    Args:
        image: changed in place.
        topics: names of topics that are not in the metadata; None without metadata.

    Returns:
        A note on each such topic.
    """
    notes = []
    for name, values in DEFAULT_SETTINGS.items():
        resource = ConfigResource(TOPIC_RESOURCE, name)
        if image.topic_named(name) is not None and (topics is None or name in topics) and resource not in image.configs:
            image.configs[resource] = dict(values)
            listed = ", ".join(f"{each}={value}" for each, value in values.items())
            notes.append(Note(name, f"its settings are lost; it gets, as a guess, {listed}"))
    return notes


# -- inferred numbers of partitions ------------------------------------------------------------------------------------


def require_coordinators(given: Mapping[str, int]) -> None:
    """Refuse numbers of partitions that are not of a coordinator's topic, or out of range.

    Raises:
        UsageError: there is such a number.
    """
    for name, number in given.items():
        if name not in KEY_FIELDS:
            msg = f"partitions: {name!r} is no topic of a coordinator; these are {', '.join(KEY_FIELDS)}"
            raise UsageError(msg)
        if not 1 <= number <= MAX_PARTITIONS:
            msg = f"partitions: {name} has from 1 to {MAX_PARTITIONS} partitions, not {number}"
            raise UsageError(msg)


def add_missing_partitions(
    image: MetadataImage,
    replicas: Replicas,
    topics: Collection[str] | None = None,
    *,
    listed: Mapping[str, int] | None = None,
    given: Mapping[str, int] | None = None,
) -> list[Note]:
    """Add missing partitions to the coordinators' topics that are not in the metadata.

    Args:
        image: changed in place: partitions without a directory are added.
        replicas: of the partitions.
        topics: names of topics that are not in the metadata; None without metadata.
        listed: the least number of partitions of topics by name, as checkpoints show; see `listed_counts`.
        given: numbers of partitions by topic, which overrule what is inferred.

    Returns:
        A note on each topic to which partitions were added, or whose number of partitions is a guess.

    Raises:
        UsageError: a given number is below that of the directories, or another than that of the metadata, or its topic
            is not in the image.
    """
    given = given or {}
    notes = []
    for name in KEY_FIELDS:
        topic = image.topic_named(name)
        is_silent = topic is not None and (topics is None or name in topics)
        if name in given:
            _require_possible(name, given[name], topic.partitions if topic is not None else {}, is_silent=is_silent)
        if topic is None or not is_silent:
            continue
        if name in given:
            count = Count(given[name], is_guess=False, reason="as it was asked for")
        else:
            numbers = (number for number in topic.partitions if number < MAX_PARTITIONS)  # others are damage
            hashes = {number: _hashes_of(name, number, replicas) for number in numbers}
            count = count_of(hashes, (listed or {}).get(name, 0))
        missing = set(range(count.number)) - topic.partitions.keys()
        topic.partitions |= {number: {"partitionId": number, "leaderEpoch": -1} for number in missing}
        if missing or count.is_guess:
            notes.append(Note(name, _count_text(name, count, len(missing))))
    return notes


def _require_possible(name: str, number: int, partitions: Collection[int], *, is_silent: bool) -> None:
    least = max((each for each in partitions if each < MAX_PARTITIONS), default=-1) + 1
    if not partitions:
        msg = f"partitions: {name} is not among the topics that are taken, as no directory of it is"
    elif is_silent and number < least:
        msg = f"partitions: {name} has at least {least} partitions, as there is a directory of {name}-{least - 1}"
    elif not is_silent and number != least:
        msg = f"partitions: the metadata say that {name} has {least} partitions, not {number}"
    else:
        return
    raise UsageError(msg)


def _count_text(name: str, count: Count, missing_count: int) -> str:
    partitions = "1 partition" if count.number == 1 else f"{count.number} partitions"
    parts = [f"{'is given' if count.is_guess else 'had'} {partitions}, {count.reason}"]
    if missing_count:
        parts.append(f"no directory of {missing_count} of them is here")
    if count.is_guess:
        parts.append(HOW_TO_OVERRULE.format(topic=name))
    return "; ".join(parts)


def listed_counts(cluster: Cluster) -> dict[str, int]:
    """Return the least number of partitions of each topic that the checkpoints in the log directories list."""
    found: dict[str, int] = {}
    for each in cluster.directories.directories:
        for listed in (each.recovery_points, each.log_start_offsets, each.high_watermarks, each.cleaner_offsets):
            for topic, number in listed:
                if number < MAX_COUNT:
                    found[topic] = max(found.get(topic, 0), number + 1)
    return found


def _hashes_of(topic: str, number: int, replicas: Replicas) -> set[int]:
    copies = [copy for copy in replicas.get((topic, number), ()) if copy.log_end_offset is not None]
    return hashes_in(topic, best_of(copies).path) if copies else set()


def name_hash(text: str) -> int:
    """Return the absolute value of Java's hash of a text, as Kafka's coordinators compute it: 0 for the least int."""
    code = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return min(code, 2**32 - code) & 0x7FFFFFFF


def count_of(hashes: Mapping[int, Collection[int]], listed: int = 0) -> Count:
    """Infer the number of partitions.

    The names are trusted if some number puts each of them where it is. If several numbers do, these come first: that
    of the directories, if these are `LEAST_COMPLETE` or more, without a gap; Kafka's default; the smallest. A greater
    number comes before it if names fit such a one by coincidence in one of 10,000 clusters at most.

    Args:
        hashes: of the names found in each partition, by its number.
        listed: the least number of partitions, as other evidence shows.
    """
    least = max(max(hashes, default=-1) + 1, listed)
    is_complete = LEAST_COMPLETE <= len(hashes) == least
    names = sum(map(len, hashes.values()))
    multiples = {each - number for number, found in hashes.items() for each in found}  # of the number of partitions
    divisor = gcd(*multiples)
    fitting = [count for count in range(max(least, 1), MAX_COUNT + 1) if not divisor % count]
    if not names:
        number, reason = least if is_complete else max(DEFAULT_COUNT, least), "a guess, as no name was found in it"
        return Count(number, is_guess=not is_complete, reason=reason)
    if not fitting:
        reason = f"a guess, as no number puts its names ({names}) where they are"
        return Count(max(DEFAULT_COUNT, least), is_guess=True, reason=reason)
    number = _preferred(fitting, len(multiples), least if is_complete else 0)
    others = [str(each) for each in fitting if each != number]
    if not others:
        return Count(number, is_guess=False, reason=f"as no other number puts its names ({names}) where they are")
    is_guess = not is_complete or number != least or (DEFAULT_COUNT in fitting and number != DEFAULT_COUNT)
    return Count(number, is_guess, f"a guess, as its names ({names}) also fit {_listed_at_most(others)}")


def _preferred(fitting: list[int], multiple_count: int, complete: int) -> int:
    """Return the number to prefer. Names that differ in the last digit alone give one multiple, as one name does."""
    first = next((each for each in (complete, DEFAULT_COUNT) if each in fitting), fitting[0])
    return next((each for each in reversed(fitting) if (first / each) ** (multiple_count - 1) < COINCIDENCE), first)


def _listed_at_most(numbers: list[str], limit: int = 3) -> str:
    return ", ".join(numbers[:limit]) + (" and more" if len(numbers) > limit else "")


def hashes_in(topic: str, path: Path) -> set[int]:
    """Return the hashes of the names in a partition of a coordinator's topic, up to its first damage."""
    found: set[int] = set()
    try:
        with open_partition(path) as partition:
            for name in _names(topic, partition.records(on_gap=lambda _gap: None)):
                found.add(name_hash(name))
                if len(found) >= MAX_KEYS:
                    break
    except SeglogError:
        pass
    return found


def _names(topic: str, records: Iterable[object]) -> Iterator[str]:
    for record in records:
        key = decode_coordinator_record(topic, record.key, record.value).get("key")  # type: ignore[attr-defined]
        fields = [key[name] for name in KEY_FIELDS[topic] if name in key] if isinstance(key, dict) else []
        if fields:
            yield ":".join(map(str, fields))
