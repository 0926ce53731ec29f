"""The state of a cluster as objects for JSON: one for each broker, topic, partition, setting, group and transaction."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_format.cluster.cluster import OPEN_STATES, transaction_state
from seglog_format.recovery.start_problems import start_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.cluster.cluster import Cluster, CoordinatorState
    from seglog_format.cluster.comparison import Replicas
    from seglog_format.cluster.image import Fields, MetadataImage, TopicImage
    from seglog_format.cluster.metadata_log import MetadataState


# -- Kafka's names for the numbers in metadata records -----------------------------------------------------------------


CONFIG_RESOURCES: Final = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Types of resources that settings belong to."""

ACL_RESOURCES: Final = {
    2: "topic",
    3: "group",
    4: "cluster",
    5: "transactional-id",
    6: "delegation-token",
    7: "user",
}
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
