"""APIs that describe the cluster: one broker, which is this server, and its topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kio.schema.errors import ErrorCode

from seglog_format.serve.calls import NODE_ID, NOT_ASKED, UNKNOWN_EPOCH, Address, Call, Services

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from seglog_format.serve.catalog import Catalog
    from seglog_format.serve.topics import Topic

GROUP_KEY: Final = 0
"""Type of a FindCoordinator key that names a consumer group."""

TRANSACTION_KEY: Final = 1
"""Type of a FindCoordinator key that names a transactional producer."""

COORDINATOR_ERRORS: Final = {
    GROUP_KEY: ErrorCode.none,
    TRANSACTION_KEY: ErrorCode.transactional_id_authorization_failed,
}

NAMELESS_SINCE: Final = 12
"""First version of Metadata whose answer may omit the name of a topic requested by id."""

BROKERS: Final = 1
"""Type of a DescribeCluster endpoint that is a broker."""


def metadata(services: Services, call: Call) -> None:
    """Answer Metadata: topics and their partitions, all led by this server, without leader epochs."""
    catalog = services.catalog
    call.respond(
        {
            "throttle_time": 0,
            "error_code": ErrorCode.none,
            "brokers": [{"node_id": NODE_ID, **_endpoint(call.address)}],
            "cluster_id": catalog.cluster_id,
            "controller_id": NODE_ID,
            "cluster_authorized_operations": NOT_ASKED,
            "topics": [*_topics(catalog, call)],
        }
    )


def _topics(catalog: Catalog, call: Call) -> Iterable[dict[str, object]]:
    asked = call.field("topics")
    may_create = call.field("allow_auto_topic_creation", default=True)
    if asked is None or (call.version == 0 and not asked):
        return (_topic_fields(catalog, each) for each in catalog.topics.values())
    nameless = None if call.version >= NAMELESS_SINCE else ""
    once = dict.fromkeys((each.name, getattr(each, "topic_id", None)) for each in asked)
    for name, _ in once if may_create else ():
        if name is not None:
            catalog.topic_to_write(name)
    return (_asked_topic(catalog, name, topic_id, nameless) for name, topic_id in once)


def _asked_topic(catalog: Catalog, name: str | None, topic_id: UUID | None, nameless: str | None) -> dict[str, object]:
    topic = catalog.topics.get(name) if name is not None else catalog.topic_of(topic_id)
    if topic is not None:
        return _topic_fields(catalog, topic)
    error = ErrorCode.unknown_topic_id if name is None else ErrorCode.unknown_topic_or_partition
    return _fields(error, nameless if name is None else name, topic_id, ())


def _topic_fields(catalog: Catalog, topic: Topic) -> dict[str, object]:
    fields = _fields(ErrorCode.none, topic.name, catalog.id_of(topic), map(_partition_fields, topic.partitions))
    return {**fields, "is_internal": topic.is_internal}


def _fields(
    error: ErrorCode, name: str | None, topic_id: UUID | None, partitions: Iterable[dict[str, object]]
) -> dict[str, object]:
    return {
        "error_code": error,
        "name": name,
        "topic_id": topic_id,
        "partitions": partitions,
        "topic_authorized_operations": NOT_ASKED,
    }


def _partition_fields(number: int) -> dict[str, object]:
    return {
        "error_code": ErrorCode.none,
        "partition_index": number,
        "leader_id": NODE_ID,
        "leader_epoch": UNKNOWN_EPOCH,
        "replica_nodes": (NODE_ID,),
        "isr_nodes": (NODE_ID,),
        "offline_replicas": (),
    }


def _endpoint(address: Address) -> dict[str, object]:
    return {"host": address.host, "port": address.port, "rack": None}


def describe_cluster(services: Services, call: Call) -> None:
    """Answer DescribeCluster: the one broker is this server."""
    call.respond(
        {
            "throttle_time": 0,
            "error_code": ErrorCode.none,
            "error_message": None,
            "endpoint_type": BROKERS,
            "cluster_id": services.catalog.cluster_id,
            "controller_id": NODE_ID,
            "brokers": [{"broker_id": NODE_ID, "is_fenced": False, **_endpoint(call.address)}],
            "cluster_authorized_operations": NOT_ASKED,
        }
    )


def find_coordinator(_services: Services, call: Call) -> None:
    """Answer FindCoordinator: this server for consumer groups, else an error that clients do not retry."""
    key_type = call.field("key_type", GROUP_KEY)
    is_known = key_type == GROUP_KEY
    found: dict[str, object] = {
        "error_code": COORDINATOR_ERRORS.get(key_type, ErrorCode.invalid_request),
        "error_message": None,
        "node_id": NODE_ID if is_known else -1,
        "host": call.address.host if is_known else "",
        "port": call.address.port if is_known else -1,
    }
    keys = dict.fromkeys(call.field("coordinator_keys", ()))
    call.respond({"throttle_time": 0, **found, "coordinators": [{"key": key, **found} for key in keys]})
