"""What is inferred where the metadata are silent: topics; partitions and settings of the coordinators' topics.

A coordinator stores a name in the partition with the number of its hash modulo the number of partitions. With another
number of partitions it would search for the name in another partition, and not find it.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.cluster.cluster import best_of, image_of
from seglog_format.cluster.image import TOPIC_RESOURCE, ConfigResource
from seglog_format.cluster.new_image import MAX_PARTITIONS, NO_SUCH_NAME, Note
from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.partition import open_partition
from seglog_format.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE, is_legal_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.comparison import Replicas
    from seglog_format.cluster.image import MetadataImage, TopicImage

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


# -- topics ------------------------------------------------------------------------------------------------------------


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


# -- settings ----------------------------------------------------------------------------------------------------------


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


# -- number of partitions ----------------------------------------------------------------------------------------------


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
    return Count(number, is_guess, f"a guess, as its names ({names}) also fit {_listed(others)}")


def _preferred(fitting: list[int], multiple_count: int, complete: int) -> int:
    """Return the number to prefer. Names that differ in the last digit alone give one multiple, as one name does."""
    first = next((each for each in (complete, DEFAULT_COUNT) if each in fitting), fitting[0])
    return next((each for each in reversed(fitting) if (first / each) ** (multiple_count - 1) < COINCIDENCE), first)


def _listed(numbers: list[str], limit: int = 3) -> str:
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
