"""Fetch: log bytes as they are stored, whenever there are some."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from seglog_format.serve.api_log import COMMITTED_ONLY, attempt
from seglog_format.serve.calls import UNKNOWN_OFFSET, Call, Services, milliseconds
from seglog_format.serve.served_partition import Fetched, LogRange
from seglog_format.serve.slices import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.model import AbortedTxn
    from seglog_format.serve.catalog import Catalog, Topic

MAX_FETCH_SIZE: Final = 55 << 20
"""Log bytes of one answer at most, whatever the client would take; as brokers set it."""

MAX_FILES: Final = 32
"""So many partitions of one answer come straight from their files; each keeps its file open until it is sent."""

MAX_WAIT_SECONDS: Final = 30.0
ZSTD_SINCE: Final = 10
"""Version of Fetch from which clients know zstd."""
TOPIC_IDS_SINCE: Final = 13
"""Version of Fetch from which topics are named by id."""

LOOK_SECONDS: Final = 1.0
"""How often a log is looked at to which nobody in this process writes, while a client waits at its end."""


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
    """Records as they are stored; at the end of a log the client waits as it asked to, or until more comes."""
    WaitingFetch(services, call).answer_or_wait()


class WaitingFetch:
    """A fetch that is tried until there is something to answer, or its time is over."""

    def __init__(self, services: Services, call: Call) -> None:
        self._services = services
        self._call = call
        self._deadline = time.monotonic() + min(milliseconds(call.body.max_wait) / 1000, MAX_WAIT_SECONDS)
        self._lock = Lock()
        self._is_answered = False

    def answer_or_wait(self) -> None:
        """Look what there is. For use by several threads at once."""
        try:
            answer = self._look()
        except BaseException:
            self._services.arrivals.forget(self._wake)
            self._call.hang_up()
            raise
        if answer is not None:
            self._services.arrivals.forget(self._wake)
            self._call.respond(answer)

    def _look(self) -> dict[str, object] | None:
        with self._lock:
            if self._is_answered:
                return None
            budget = FetchBudget(min(self._call.body.max_bytes, MAX_FETCH_SIZE))
            answer = _answer(self._services.catalog, self._call, budget)
            left = self._deadline - time.monotonic()
            if budget.is_empty and not budget.has_errors and left > 0 and not self._services.arrivals.has_ended:
                self._wait(left)
                return None
            self._is_answered = True
            return answer

    def _wait(self, seconds: float) -> None:
        self._services.arrivals.expect(_asked_partitions(self._services.catalog, self._call), self._wake)
        self._services.delays.after(min(seconds, LOOK_SECONDS), self._wake)

    def _wake(self) -> None:
        if not self._is_answered:
            self._services.submit(self.answer_or_wait)


def _asked_partitions(catalog: Catalog, call: Call) -> Iterator[tuple[str, int]]:
    for asked in call.body.topics:
        topic = _topic_of(catalog, call, asked)
        if topic is not None:
            yield from ((topic.name, each.partition) for each in asked.partitions)


def _topic_of(catalog: Catalog, call: Call, asked: Any) -> Topic | None:
    by_id = call.version >= TOPIC_IDS_SINCE
    return catalog.topic_of(asked.topic_id) if by_id else catalog.topics.get(asked.topic)


def _answer(catalog: Catalog, call: Call, budget: FetchBudget) -> dict[str, object]:
    is_session = call.field("session_id", 0) != 0
    budget.has_errors = is_session
    return {
        "throttle_time": 0,
        "error_code": ErrorCode.fetch_session_id_not_found if is_session else ErrorCode.none,
        "session_id": 0,
        "responses": [] if is_session else [_fetched_topic(catalog, call, each, budget) for each in call.body.topics],
    }


def _fetched_topic(catalog: Catalog, call: Call, asked: Any, budget: FetchBudget) -> dict[str, object]:
    by_id = call.version >= TOPIC_IDS_SINCE
    topic = _topic_of(catalog, call, asked)
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
    found = attempt(served, read)
    if isinstance(found, Fetched) and found.records is None and served.look_again():
        found = attempt(served, read)
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
    aborted, log = found.aborted, found.log.told
    return {
        "partition_index": number,
        "error_code": error,
        "high_watermark": log.end,
        "last_stable_offset": log.stable,
        "log_start_offset": log.start,
        "aborted_transactions": None if aborted is None else map(_aborted_fields, aborted),
        "records": b"" if found.records is None else found.records,
    }


def _aborted_fields(transaction: AbortedTxn) -> dict[str, object]:
    return {"producer_id": transaction.producer_id, "first_offset": transaction.first_offset}
