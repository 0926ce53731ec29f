"""APIs that describe: one broker, which is this server, its topics, and the offsets of a log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from kio.schema.errors import ErrorCode

from seglog_format.errors import FormatError, OffsetOutOfRangeError, UnreadableError, UsageError
from seglog_format.log.reading import OffsetSpec
from seglog_format.model import NO_TIMESTAMP, TimestampOffset
from seglog_format.serve.calls import NODE_ID, NOT_ASKED, UNKNOWN_EPOCH, UNKNOWN_OFFSET, Address, Call, Services
from seglog_format.serve.lanes import TooMuchError
from seglog_format.storage.file_reader import is_cut_short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from seglog_format.serve.catalog import Catalog, Topic
    from seglog_format.serve.served_partition import ServedPartition


# -- APIs that describe the cluster: one broker, which is this server, and its topics ----------------------------------


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


# -- the partitions that a request names, without duplicates -----------------------------------------------------------


def requested_partitions(topics: Iterable[Any], topic_key: str, partition_key: str) -> dict[Any, dict[int, Any]]:
    """Return the request's entry for each partition, by topic and number; the first of several wins.

    Args:
        topics: of the request; each has `partitions`.
        topic_key: the field that names a topic.
        partition_key: the field that numbers a partition.
    """
    found: dict[Any, dict[int, Any]] = {}
    for topic in topics:
        partitions = found.setdefault(getattr(topic, topic_key), {})
        for each in topic.partitions:
            partitions.setdefault(getattr(each, partition_key), each)
    return found


# -- APIs about a log --------------------------------------------------------------------------------------------------


COMMITTED_ONLY: Final = 1

Find: TypeAlias = "Callable[[ServedPartition, int], TimestampOffset | None]"

AnswerT = TypeVar("AnswerT")


def attempt(served: ServedPartition, read: Callable[[], AnswerT]) -> AnswerT | ErrorCode:
    """Return what `read` returns, or an error code if it fails.

    If a file is gone or damaged, the directory is listed again and read once more. If one has become shorter, the
    client gets an error first: else it would pass over what was cut off without a word.
    """
    try:
        found = _attempt_once(read)
        if found is ErrorCode.kafka_storage_error:
            served.forget()
            return _attempt_once(read)
        is_damaged = found is ErrorCode.corrupt_message
        if (is_damaged or found is ErrorCode.offset_out_of_range) and served.refresh(is_damaged=is_damaged):
            return _attempt_once(read)
    except UnreadableError:
        served.forget()
        return ErrorCode.kafka_storage_error
    return found


def _attempt_once(read: Callable[[], AnswerT]) -> AnswerT | ErrorCode:
    try:
        return read()
    except OffsetOutOfRangeError:
        return ErrorCode.offset_out_of_range
    except FormatError as error:
        if is_cut_short(error):
            raise
        return ErrorCode.corrupt_message
    except UsageError:
        return ErrorCode.kafka_storage_error


def list_offsets(services: Services, call: Call) -> None:
    """Answer ListOffsets: log start and end offsets, and offsets by timestamp."""
    is_committed_only = call.field("isolation_level", 0) == COMMITTED_ONLY
    find = partial(_find, is_long=call.is_long, is_committed_only=is_committed_only)
    topics = [
        {
            "name": topic,
            "partitions": [_listed(services.catalog, topic, each, find) for each in partitions.values()],
        }
        for topic, partitions in requested_partitions(call.body.topics, "name", "partition_index").items()
    ]
    call.respond({"throttle_time": 0, "topics": topics})


def _listed(catalog: Catalog, topic: str, asked: Any, find: Find) -> dict[str, object]:
    number, timestamp_ms = asked.partition_index, asked.timestamp
    served = catalog.partition(topic, number)
    if served is None:
        return _offset_fields(number, ErrorCode.unknown_topic_or_partition, None)
    found = attempt(served, partial(find, served, timestamp_ms))
    if isinstance(found, ErrorCode):
        return _offset_fields(number, found, None)
    return _offset_fields(number, ErrorCode.none, found)


def _find(
    served: ServedPartition, timestamp_ms: int, *, is_long: bool, is_committed_only: bool
) -> TimestampOffset | None:
    is_searched = timestamp_ms >= 0 or timestamp_ms == OffsetSpec.MAX_TIMESTAMP
    if not is_long and (is_searched or served.may_take_long(None, is_committed_only=is_committed_only)):
        raise TooMuchError
    if timestamp_ms < 0:
        served.refresh()
    if timestamp_ms == OffsetSpec.LATEST:
        log = served.log_range(is_committed_only=is_committed_only)
        return TimestampOffset(NO_TIMESTAMP, log.as_fields.stable)
    if timestamp_ms < OffsetSpec.LATEST_TIERED:  # lower values have a meaning for tiered logs only
        return None
    found = served.offset_for_timestamp(timestamp_ms)
    if found is None or not is_committed_only or timestamp_ms < 0:
        return found
    return found if found.offset < served.log_range(is_committed_only=True).stable else None


def _offset_fields(number: int, error: ErrorCode, found: TimestampOffset | None) -> dict[str, object]:
    return {
        "partition_index": number,
        "error_code": error,
        "timestamp": NO_TIMESTAMP if found is None else found.timestamp_ms,
        "offset": UNKNOWN_OFFSET if found is None else found.offset,
        "leader_epoch": UNKNOWN_EPOCH,
    }


def offset_for_leader_epoch(services: Services, call: Call) -> None:
    """Answer OffsetForLeaderEpoch from the leader epoch checkpoint."""
    topics = [
        {
            "topic": topic,
            "partitions": [_epoch_fields(services.catalog, topic, each, call) for each in partitions.values()],
        }
        for topic, partitions in requested_partitions(call.body.topics, "topic", "partition").items()
    ]
    call.respond({"throttle_time": 0, "topics": topics})


def _epoch_fields(catalog: Catalog, topic: str, asked: Any, call: Call) -> dict[str, object]:
    served = catalog.partition(topic, asked.partition)
    error, found = ErrorCode.unknown_topic_or_partition, (UNKNOWN_EPOCH, UNKNOWN_OFFSET)
    if served is not None:
        if not call.is_long and served.may_take_long(None, is_committed_only=False):
            raise TooMuchError
        answer = attempt(served, partial(_end_of_epoch, catalog, served, asked.leader_epoch))
        error, found = (answer, found) if isinstance(answer, ErrorCode) else (ErrorCode.none, answer)
    epoch, end_offset = found
    return {"error_code": error, "partition": asked.partition, "leader_epoch": epoch, "end_offset": end_offset}


def _end_of_epoch(catalog: Catalog, served: ServedPartition, epoch: int) -> tuple[int, int]:
    """Return the epoch, or else the greatest known epoch below it, and the first offset after it; -1 if unknown."""
    starts = catalog.leader_epochs(served.source.topic, served.source.number)
    if epoch < 0 or not starts or epoch > starts[-1].epoch:
        return UNKNOWN_EPOCH, UNKNOWN_OFFSET
    if epoch == starts[-1].epoch:
        return epoch, served.log_range(is_committed_only=False).as_fields.end
    following = next(each for each in starts if each.epoch > epoch)
    floor = max((each.epoch for each in starts if each.epoch <= epoch), default=epoch)
    return floor, following.start_offset
