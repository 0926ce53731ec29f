"""APIs that read logs: where they start and end, and what stands in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from seglog_format.errors import FormatError, OffsetOutOfRangeError, UsageError
from seglog_format.log.timestamps import LATEST_TIMESTAMP
from seglog_format.model import NO_TIMESTAMP, TimestampOffset
from seglog_format.serve.calls import UNKNOWN_EPOCH, UNKNOWN_OFFSET, Call, Services, milliseconds
from seglog_format.serve.served_partition import Fetched, LogRange
from seglog_format.serve.slices import size_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.model import AbortedTxn
    from seglog_format.serve.catalog import Catalog, Topic
    from seglog_format.serve.served_partition import ServedPartition

MAX_FETCH_SIZE: Final = 55 << 20
"""Log bytes of one answer at most, whatever the client would take; as brokers set it."""

MAX_FILES: Final = 32
"""So many partitions of one answer come straight from their files; each keeps its file open until it is sent."""

MAX_WAIT_SECONDS: Final = 30.0
COMMITTED_ONLY: Final = 1
ZSTD_SINCE: Final = 10
"""Version of Fetch from which clients know zstd."""
TOPIC_IDS_SINCE: Final = 13
"""Version of Fetch from which topics are named by id."""

AnswerT = TypeVar("AnswerT")


def _attempt(served: ServedPartition, read: Callable[[], AnswerT]) -> AnswerT | ErrorCode:
    """What reading gives, or the error that stands for what went wrong."""
    try:
        return read()
    except OffsetOutOfRangeError:
        return ErrorCode.offset_out_of_range
    except FormatError:
        return ErrorCode.corrupt_message
    except UsageError:
        served.forget()
        return ErrorCode.kafka_storage_error


def list_offsets(services: Services, call: Call) -> None:
    """Log start and end offsets, and offsets by timestamp."""
    is_committed_only = call.field("isolation_level", 0) == COMMITTED_ONLY
    topics = [
        {
            "name": topic.name,
            "partitions": [
                _listed(services.catalog, topic.name, each, is_committed_only=is_committed_only)
                for each in topic.partitions
            ],
        }
        for topic in call.body.topics
    ]
    call.respond({"throttle_time": 0, "topics": topics})


def _listed(catalog: Catalog, topic: str, asked: Any, *, is_committed_only: bool) -> dict[str, object]:
    number, timestamp_ms = asked.partition_index, asked.timestamp
    served = catalog.partition(topic, number)
    if served is None:
        return _offset_fields(number, ErrorCode.unknown_topic_or_partition, None)
    found = _attempt(served, partial(_find, served, timestamp_ms, is_committed_only=is_committed_only))
    if isinstance(found, ErrorCode):
        return _offset_fields(number, found, None)
    return _offset_fields(number, ErrorCode.none, found)


def _find(served: ServedPartition, timestamp_ms: int, *, is_committed_only: bool) -> TimestampOffset | None:
    if timestamp_ms == LATEST_TIMESTAMP:
        log = served.log_range(is_committed_only=is_committed_only)
        return TimestampOffset(NO_TIMESTAMP, log.stable)
    if timestamp_ms < -5:  # noqa: PLR2004 - what is below has a meaning for tiered logs only
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


@dataclass(slots=True)
class FetchBudget:
    """What is left of one answer.

    Attributes:
        size: bytes.
        files: partitions that come straight from their files.
        is_empty: there are no records yet: the first entry comes whatever its size.
        has_errors: something went wrong, which the client should hear at once.
    """

    size: int
    files: int = MAX_FILES
    is_empty: bool = True
    has_errors: bool = False


def fetch(services: Services, call: Call) -> None:
    """Records as they are stored. A log that has no more does not grow either: then the client waits as it asked to."""
    body = call.body
    budget = FetchBudget(min(body.max_bytes, MAX_FETCH_SIZE))
    is_session = call.field("session_id", 0) != 0
    answer = {
        "throttle_time": 0,
        "error_code": ErrorCode.fetch_session_id_not_found if is_session else ErrorCode.none,
        "session_id": 0,
        "responses": []
        if is_session
        else [_fetched_topic(services.catalog, call, each, budget) for each in body.topics],
    }
    wait = min(milliseconds(body.max_wait) / 1000, MAX_WAIT_SECONDS)
    if is_session or not budget.is_empty or budget.has_errors or wait <= 0:
        call.respond(answer)
    else:
        services.delays.after(wait, partial(call.respond, answer))


def _fetched_topic(catalog: Catalog, call: Call, asked: Any, budget: FetchBudget) -> dict[str, object]:
    by_id = call.version >= TOPIC_IDS_SINCE
    topic = catalog.topic_of(asked.topic_id) if by_id else catalog.topics.get(asked.topic)
    unknown = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
    return {
        "topic": "" if by_id else asked.topic,
        "topic_id": asked.topic_id if by_id else None,
        "partitions": [
            _fetched_partition(catalog, call, topic, each, budget) if topic else _refused(each, unknown, budget)
            for each in asked.partitions
        ],
    }


def _refused(asked: Any, error: ErrorCode, budget: FetchBudget) -> dict[str, object]:
    budget.has_errors = True
    nothing = Fetched(LogRange(UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET), None, None)
    return _fetch_fields(asked.partition, error, nothing)


def _fetched_partition(
    catalog: Catalog,
    call: Call,
    topic: Topic,
    asked: Any,
    budget: FetchBudget,
) -> dict[str, object]:
    served = catalog.partition(topic.name, asked.partition)
    if served is None:
        return _refused(asked, ErrorCode.unknown_topic_or_partition, budget)
    read = partial(
        served.fetch,
        asked.fetch_offset,
        min(asked.partition_max_bytes, budget.size) if budget.files else 0,
        is_committed_only=call.field("isolation_level", 0) == COMMITTED_ONLY,
        is_first=budget.is_empty,
    )
    found = _attempt(served, read)
    if isinstance(found, Fetched) and found.has_zstd and call.version < ZSTD_SINCE:
        found = ErrorCode.unsupported_compression_type
    if isinstance(found, ErrorCode):
        return _refused(asked, found, budget)
    if found.records is not None:
        budget.size -= size_of(found.records)
        budget.files -= not isinstance(found.records, bytes)
        budget.is_empty = False
    return _fetch_fields(asked.partition, ErrorCode.none, found)


def _fetch_fields(number: int, error: ErrorCode, found: Fetched) -> dict[str, object]:
    aborted = found.aborted
    return {
        "partition_index": number,
        "error_code": error,
        "high_watermark": found.log.end,
        "last_stable_offset": found.log.stable,
        "log_start_offset": found.log.start,
        "aborted_transactions": None if aborted is None else map(_aborted_fields, aborted),
        "records": b"" if found.records is None else found.records,
    }


def _aborted_fields(transaction: AbortedTxn) -> dict[str, object]:
    return {"producer_id": transaction.producer_id, "first_offset": transaction.first_offset}


def offset_for_leader_epoch(services: Services, call: Call) -> None:
    """Where the log of an epoch ends, by the leader epoch checkpoint."""
    topics = [
        {
            "topic": topic.topic,
            "partitions": [_epoch_fields(services.catalog, topic.topic, each) for each in topic.partitions],
        }
        for topic in call.body.topics
    ]
    call.respond({"throttle_time": 0, "topics": topics})


def _epoch_fields(catalog: Catalog, topic: str, asked: Any) -> dict[str, object]:
    served = catalog.partition(topic, asked.partition)
    error, found = ErrorCode.unknown_topic_or_partition, (UNKNOWN_EPOCH, UNKNOWN_OFFSET)
    if served is not None:
        answer = _attempt(served, partial(_end_of_epoch, catalog, served, asked.leader_epoch))
        error, found = (answer, found) if isinstance(answer, ErrorCode) else (ErrorCode.none, answer)
    epoch, end_offset = found
    return {"error_code": error, "partition": asked.partition, "leader_epoch": epoch, "end_offset": end_offset}


def _end_of_epoch(catalog: Catalog, served: ServedPartition, epoch: int) -> tuple[int, int]:
    """The epoch, or the greatest below that there was, and the first offset after it; -1 where nobody knows."""
    starts = catalog.leader_epochs(served.topic, served.number)
    if epoch < 0 or not starts or epoch > starts[-1].epoch:
        return UNKNOWN_EPOCH, UNKNOWN_OFFSET
    if epoch == starts[-1].epoch:
        return epoch, served.log_range(is_committed_only=False).end
    following = next(each for each in starts if each.epoch > epoch)
    floor = max((each.epoch for each in starts if each.epoch <= epoch), default=epoch)
    return floor, following.start_offset
