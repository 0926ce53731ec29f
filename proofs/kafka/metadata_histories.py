"""Random histories of a cluster's metadata: valid records of all kinds that a KRaft controller writes."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_format.codec.coordinator_records import encode_metadata_record, newest_version

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from seglog_format.types import MetadataImage

METADATA_TOPIC: Final = "__cluster_metadata"

NEWEST: Final = 33
"""Feature level of ``metadata.version`` in 4.4."""

Fields: TypeAlias = dict[str, Any]


def encoded(kind: str, fields: Fields) -> bytes:
    """Return the value of a record in the newest version of its type."""
    return encode_metadata_record(METADATA_TOPIC, kind, newest_version(METADATA_TOPIC, kind), fields)


def made_history(source: random.Random, image: MetadataImage, count: int) -> Iterator[tuple[str, Fields]]:
    """Yield records that fit the image at the time of each.

    Args:
        source: random number generator.
        image: image to which the caller applies each record before the next.
        count: number of records after the first, which sets ``metadata.version``.
    """
    yield "FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": NEWEST}
    for _ in range(count):
        kind = source.choice([name for name, (_, wanted) in MAKERS.items() if wanted(image)])
        yield kind, MAKERS[kind][0](source, image)


def _id(source: random.Random) -> str:
    return base64.urlsafe_b64encode(source.randbytes(16)).decode("ascii").rstrip("=")


def _bytes(source: random.Random) -> str:
    return base64.b64encode(source.randbytes(8)).decode("ascii")


def _always(_image: MetadataImage) -> bool:
    return True


def _has_broker(image: MetadataImage) -> bool:
    return bool(image.brokers)


def _has_topic(image: MetadataImage) -> bool:
    return bool(image.topics)


def _has_partition(image: MetadataImage) -> bool:
    return any(topic.partitions for topic in image.topics.values())


def _feature_level(source: random.Random, _image: MetadataImage) -> Fields:
    return {
        "name": source.choice(["group.version", "eligible.leader.replicas.version"]),
        "featureLevel": source.randrange(2),
    }


def _register_broker(source: random.Random, _image: MetadataImage) -> Fields:
    return {
        "brokerId": source.randrange(4),
        "isMigratingZkBroker": False,
        "incarnationId": _id(source),
        "brokerEpoch": source.randrange(100),
        "endPoints": [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9092, "securityProtocol": 0}],
        "features": [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": NEWEST}],
        "rack": source.choice([None, "a"]),
        "fenced": source.choice([True, False]),
        "inControlledShutdown": False,
        "logDirs": [_id(source)],
    }


def _known_broker(source: random.Random, image: MetadataImage) -> Fields:
    return image.brokers[source.choice(sorted(image.brokers))]


def _unregister_broker(source: random.Random, image: MetadataImage) -> Fields:
    broker = _known_broker(source, image)
    return {"brokerId": broker["brokerId"], "brokerEpoch": broker["brokerEpoch"]}


def _fence_broker(source: random.Random, image: MetadataImage) -> Fields:
    broker = _known_broker(source, image)
    return {"id": broker["brokerId"], "epoch": broker["brokerEpoch"]}


def _broker_registration_change(source: random.Random, image: MetadataImage) -> Fields:
    broker = _known_broker(source, image)
    fields = {"brokerId": broker["brokerId"], "brokerEpoch": broker["brokerEpoch"]}
    extra: list[Fields] = [
        {"fenced": source.choice([-1, 1])},
        {"inControlledShutdown": 1},
        {"logDirs": [_id(source), _id(source)]},
        {"cordonedLogDirs": [_id(source)]},
        {"cordonedLogDirs": []},
    ]
    return fields | source.choice(extra)


def _topic(source: random.Random, image: MetadataImage) -> Fields:
    names = {topic.name for topic in image.topics.values()}
    name = next(name for name in (f"t{number}" for number in range(len(names) + 1)) if name not in names)
    return {"name": name, "topicId": _id(source)}


def _known_topic(source: random.Random, image: MetadataImage) -> str:
    return source.choice(list(image.topics))


def _remove_topic(source: random.Random, image: MetadataImage) -> Fields:
    return {"topicId": _known_topic(source, image)}


def _partition(source: random.Random, image: MetadataImage) -> Fields:
    topic_id = _known_topic(source, image)
    nodes = source.sample(range(4), 2)
    return {
        "partitionId": len(image.topics[topic_id].partitions),
        "topicId": topic_id,
        "replicas": nodes,
        "isr": nodes,
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": nodes[0],
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": [_id(source), _id(source)],
    }


def _partition_change(source: random.Random, image: MetadataImage) -> Fields:
    topic = source.choice([each for each in image.topics.values() if each.partitions])
    number = source.choice(list(topic.partitions))
    nodes = topic.partitions[number]["replicas"]
    moved = source.sample(range(4), 2)
    extra: list[Fields] = [
        {"isr": nodes[:1], "leader": nodes[0]},
        {"isr": nodes},
        {"leader": source.choice([-1, nodes[-1]]), "isr": nodes[-1:]},
        {"isr": [], "leader": -1, "eligibleLeaderReplicas": nodes[:1], "lastKnownElr": nodes[1:]},
        {"isr": nodes[:1], "leader": nodes[0], "leaderRecoveryState": 1},
        {"isr": nodes[:1], "leaderRecoveryState": 0},
        {"replicas": moved, "directories": [_id(source), _id(source)], "isr": moved, "addingReplicas": moved[:1]},
        {"removingReplicas": nodes[:1]},
        {"directories": [_id(source), _id(source)]},
    ]
    return {"partitionId": number, "topicId": topic.topic_id} | source.choice(extra)


def _empty_elr(source: random.Random, image: MetadataImage) -> Fields:
    return {"topicName": source.choice(["", image.topics[_known_topic(source, image)].name])}


def _config(source: random.Random, image: MetadataImage) -> Fields:
    names = [topic.name for topic in image.topics.values()]
    kind, name = source.choice([(4, ""), (4, "1"), *((2, each) for each in names)])
    value = source.choice(["1", "2", "", None])
    return {"resourceType": kind, "resourceName": name, "name": source.choice(["a", "b"]), "value": value}


def _client_quota(source: random.Random, _image: MetadataImage) -> Fields:
    entity = [{"entityType": "user", "entityName": source.choice([None, "alice"])}]
    if source.choice([True, False]):
        entity.insert(source.randrange(2), {"entityType": "client-id", "entityName": source.choice([None, "c"])})
    value, remove = float(source.randrange(1, 9)), source.choice([True, False, False])
    return {"entity": entity, "key": source.choice(["producer_byte_rate", "k"]), "value": value, "remove": remove}


def _producer_ids(source: random.Random, image: MetadataImage) -> Fields:
    start = max(image.next_producer_id, 0) + source.choice([1000, 5000])
    return {"brokerId": 1, "brokerEpoch": 7, "nextProducerId": start}


def _access_control_entry(source: random.Random, _image: MetadataImage) -> Fields:
    return {
        "id": _id(source),
        "resourceType": 2,
        "resourceName": source.choice(["t0", "*"]),
        "patternType": 3,
        "principal": "User:alice",
        "host": "*",
        "operation": source.randrange(2, 13),
        "permissionType": source.choice([2, 3]),
    }


def _remove_access_control_entry(source: random.Random, image: MetadataImage) -> Fields:
    return {"id": source.choice(list(image.acls))}


def _scram_credential(source: random.Random, _image: MetadataImage) -> Fields:
    return {
        "name": source.choice(["alice", "bob"]),
        "mechanism": source.choice([1, 2]),
        "salt": _bytes(source),
        "storedKey": _bytes(source),
        "serverKey": _bytes(source),
        "iterations": 4096,
    }


def _remove_scram_credential(source: random.Random, image: MetadataImage) -> Fields:
    name, mechanism = source.choice(list(image.scram_credentials))
    return {"name": name, "mechanism": mechanism}


def _delegation_token(source: random.Random, _image: MetadataImage) -> Fields:
    return {
        "owner": "User:alice",
        "requester": "User:alice",
        "renewers": ["User:bob"],
        "issueTimestamp": 1,
        "maxTimestamp": 9,
        "expirationTimestamp": source.randrange(2, 9),
        "tokenId": source.choice(["x", "y"]),
    }


def _remove_delegation_token(source: random.Random, image: MetadataImage) -> Fields:
    return {"tokenId": source.choice(list(image.delegation_tokens))}


def _register_controller(source: random.Random, _image: MetadataImage) -> Fields:
    fields = _register_broker(source, _image)
    shown: Fields = {name: fields[name] for name in ("incarnationId", "endPoints", "features")}
    return {"controllerId": source.randrange(3), "zkMigrationReady": False, **shown}


def _unregister_controller(source: random.Random, image: MetadataImage) -> Fields:
    return {"controllerId": source.choice(list(image.controllers))}


def _no_op(_source: random.Random, _image: MetadataImage) -> Fields:
    return {}


MAKERS: Final[dict[str, tuple[Any, Any]]] = {
    "FEATURE_LEVEL_RECORD": (_feature_level, _always),
    "REGISTER_BROKER_RECORD": (_register_broker, _always),
    "UNREGISTER_BROKER_RECORD": (_unregister_broker, _has_broker),
    "FENCE_BROKER_RECORD": (_fence_broker, _has_broker),
    "UNFENCE_BROKER_RECORD": (_fence_broker, _has_broker),
    "BROKER_REGISTRATION_CHANGE_RECORD": (_broker_registration_change, _has_broker),
    "TOPIC_RECORD": (_topic, _always),
    "REMOVE_TOPIC_RECORD": (_remove_topic, _has_topic),
    "PARTITION_RECORD": (_partition, _has_topic),
    "PARTITION_CHANGE_RECORD": (_partition_change, _has_partition),
    "CLEAR_ELR_RECORD": (_empty_elr, _has_topic),
    "CONFIG_RECORD": (_config, _always),
    "CLIENT_QUOTA_RECORD": (_client_quota, _always),
    "PRODUCER_IDS_RECORD": (_producer_ids, _always),
    "ACCESS_CONTROL_ENTRY_RECORD": (_access_control_entry, _always),
    "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": (_remove_access_control_entry, lambda image: bool(image.acls)),
    "USER_SCRAM_CREDENTIAL_RECORD": (_scram_credential, _always),
    "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": (_remove_scram_credential, lambda image: bool(image.scram_credentials)),
    "DELEGATION_TOKEN_RECORD": (_delegation_token, _always),
    "REMOVE_DELEGATION_TOKEN_RECORD": (_remove_delegation_token, lambda image: bool(image.delegation_tokens)),
    "REGISTER_CONTROLLER_RECORD": (_register_controller, _always),
    "UNREGISTER_CONTROLLER_RECORD": (_unregister_controller, lambda image: bool(image.controllers)),
    "NO_OP_RECORD": (_no_op, _always),
}
"""For each kind: the maker of its fields, and whether the image meets its preconditions."""
