"""Fetch: log bytes as they are stored."""

from __future__ import annotations

import time
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kio.schema.errors import ErrorCode

from seglog_format.model import AbortedTxn, CompressionCodec
from seglog_format.serve.api_log import COMMITTED_ONLY, attempt, requested_partitions
from seglog_format.serve.calls import UNKNOWN_OFFSET, Call, Services, milliseconds
from seglog_format.serve.lanes import TooMuchError
from seglog_format.serve.slices import MIN_SLICE_SIZE, Fetched, LogRange, size_of
from seglog_format.serve.wire import GAP, envelope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from seglog_format.serve.catalog import Catalog, Topic
    from seglog_format.serve.slices import Chunk
    from seglog_format.serve.wire import Envelope

MAX_FETCH_SIZE: Final = 55 << 20
"""Maximum log bytes in one answer, whatever the client accepts; the default of brokers."""

MAX_FILES: Final = 32
"""Maximum partitions of one answer that are sent from their files; each file stays open until it is sent."""

MAX_WAIT_SECONDS: Final = 30.0
ZSTD_SINCE: Final = 10
"""Version of Fetch from which clients know zstd."""
TOPIC_IDS_SINCE: Final = 13
"""Version of Fetch from which topics are named by id."""

MAX_REMEMBERED: Final = 256
MAX_REMEMBERED_PARTITIONS: Final = 64
"""Maximum number of partitions of an encoded answer that is kept, without its log bytes, for reuse."""

API_KEY: Final = 1

Asked: TypeAlias = "dict[Any, dict[int, Any]]"
"""The partitions of a request: by topic name or id, then by number."""

NOTHING: Final = Fetched(LogRange(UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET), None, None)

LOOK_SECONDS: Final = 1.0
"""Interval at which a log without a writer in this process is checked for growth while a client waits at its end."""


class FetchBudget:
    """Rest of the limits of one answer.

    Attributes:
        is_long: lookups may take long; if False, slow lookups are left to the queue of long requests.
        size: bytes.
        files: partitions that may still be sent from their files, or in large copies of what was fetched.
        is_empty: the answer holds no records yet, so the first entry is sent whatever its size.
        has_errors: an error occurred, so the answer is sent at once.
    """

    __slots__ = ("files", "has_errors", "is_empty", "is_long", "size")

    def __init__(self, size: int, *, is_long: bool) -> None:
        self.size = size
        self.is_long = is_long
        self.files = MAX_FILES
        self.is_empty = True
        self.has_errors = False


class PartitionAnswer(NamedTuple):
    """The answer for one partition, without its log bytes."""

    number: int
    error: ErrorCode
    log: LogRange
    aborted: Sequence[AbortedTxn] | None

    def fields(self) -> dict[str, object]:
        """Return the fields to encode."""
        return {
            "partition_index": self.number,
            "error_code": self.error,
            "high_watermark": self.log.end,
            "last_stable_offset": self.log.stable,
            "log_start_offset": self.log.start,
            "aborted_transactions": None if self.aborted is None else map(_aborted_fields, self.aborted),
            "records": GAP,
        }


class TopicAnswer(NamedTuple):
    """The answer for one topic, identified by name or by id."""

    name: str
    topic_id: UUID | None
    partitions: tuple[PartitionAnswer, ...]

    def fields(self) -> dict[str, object]:
        """Return the fields to encode."""
        partitions = [each.fields() for each in self.partitions]
        return {"topic": self.name, "topic_id": self.topic_id, "partitions": partitions}


class Answer(NamedTuple):
    """An answer, and the log bytes of its partitions in order."""

    error: ErrorCode
    topics: tuple[TopicAnswer, ...]
    records: list[Chunk]

    def envelope(self, version: int) -> Envelope:
        """Encode the answer with gaps for log bytes; reuse an equal answer encoded before.

        Answers about unknown topics are not kept: clients choose the length of those names.
        """
        is_short = len(self.records) <= MAX_REMEMBERED_PARTITIONS
        is_plain = not any(each.aborted or each.error for topic in self.topics for each in topic.partitions)
        encode = _remembered if is_short and is_plain else _encoded
        return encode(version, self.error, self.topics)


def _encoded(version: int, error: ErrorCode, topics: tuple[TopicAnswer, ...]) -> Envelope:
    fields = [each.fields() for each in topics]
    return envelope(API_KEY, version, {"throttle_time": 0, "error_code": error, "session_id": 0, "responses": fields})


_remembered: Final = lru_cache(MAX_REMEMBERED)(_encoded)


def _aborted_fields(transaction: AbortedTxn) -> dict[str, object]:
    return {"producer_id": transaction.producer_id, "first_offset": transaction.first_offset}


def fetch(services: Services, call: Call) -> None:
    """Answer Fetch with records as they are stored; at the end of a log, wait as long as the client allows."""
    WaitingFetch(services, call).answer_or_wait(is_long=call.is_long)


class WaitingFetch:
    """A fetch that is retried until there is something to answer, or its time is over."""

    def __init__(self, services: Services, call: Call) -> None:
        self._services = services
        self._call = call
        self._asked = _asked(call)
        self._deadline = time.monotonic() + min(milliseconds(call.body.max_wait) / 1000, MAX_WAIT_SECONDS)
        self._lock = Lock()
        self._is_answered = self._is_expecting = self._is_woken = False

    def answer_or_wait(self, *, is_long: bool) -> None:
        """Answer if there is something to answer, else wait. Thread-safe.

        Args:
            is_long: this is the queue of long requests; if False, a slow fetch is moved there.
        """
        try:
            answer = self._look(is_long=is_long)
        except TooMuchError:
            self._submit(is_long=True)
            return
        except BaseException:
            self._forget()
            self._call.hang_up()
            raise
        if answer is not None:
            self._forget()
            self._call.fill(answer.envelope(self._call.version), answer.records)

    def _look(self, *, is_long: bool) -> Answer | None:
        with self._lock:
            self._is_woken = False
            if self._is_answered:
                return None
            budget = FetchBudget(min(self._call.body.max_bytes, MAX_FETCH_SIZE), is_long=is_long)
            answer = _answer(self._services.catalog, self._call, self._asked, budget)
            left = self._deadline - time.monotonic()
            if budget.is_empty and not budget.has_errors and left > 0 and not self._services.arrivals.has_ended:
                self._wait(left)
                return None
            self._is_answered = True
            return answer

    def _forget(self) -> None:
        if self._is_expecting:
            self._services.arrivals.forget(self._wake)

    def _wait(self, seconds: float) -> None:
        if not self._is_expecting:
            self._is_expecting = True
            self._services.arrivals.expect(self._partitions(), self._wake)
        self._services.delays.after(min(seconds, LOOK_SECONDS), self._wake)

    def _partitions(self) -> Iterator[tuple[str, int]]:
        return _asked_partitions(self._services.catalog, self._call, self._asked)

    def _wake(self) -> None:
        if self._call.is_gone():
            self._is_answered = True
            self._forget()
        if not self._is_answered and not self._is_woken:
            self._is_woken = True
            self._submit(is_long=self._call.is_long)

    def _submit(self, *, is_long: bool) -> None:
        self._services.submit(partial(self.answer_or_wait, is_long=is_long), is_long)


def _asked(call: Call) -> Asked:
    return requested_partitions(
        call.body.topics, "topic_id" if call.version >= TOPIC_IDS_SINCE else "topic", "partition"
    )


def _asked_partitions(catalog: Catalog, call: Call, asked: Asked) -> Iterator[tuple[str, int]]:
    for key, partitions in asked.items():
        topic = _topic_of(catalog, call, key)
        if topic is not None:
            yield from ((topic.name, number) for number in partitions)


def _topic_of(catalog: Catalog, call: Call, key: Any) -> Topic | None:
    return catalog.topic_of(key) if call.version >= TOPIC_IDS_SINCE else catalog.topics.get(key)


def _answer(catalog: Catalog, call: Call, asked: Asked, budget: FetchBudget) -> Answer:
    if call.field("session_id", 0) != 0:
        budget.has_errors = True
        return Answer(ErrorCode.fetch_session_id_not_found, (), [])
    records: list[Chunk] = []
    topics = tuple(
        _fetched_topic(catalog, call, key, partitions.values(), budget, records) for key, partitions in asked.items()
    )
    return Answer(ErrorCode.none, topics, records)


def _fetched_topic(
    catalog: Catalog, call: Call, key: Any, asked: Iterable[Any], budget: FetchBudget, records: list[Chunk]
) -> TopicAnswer:
    by_id = call.version >= TOPIC_IDS_SINCE
    topic = _topic_of(catalog, call, key)
    unknown = ErrorCode.unknown_topic_id if by_id else ErrorCode.unknown_topic_or_partition
    partitions = []
    for each in asked:
        error, found = _fetched_partition(catalog, call, topic, each, budget) if topic else (unknown, NOTHING)
        budget.has_errors |= error is not ErrorCode.none
        records.append(b"" if found.records is None else found.records)
        partitions.append(PartitionAnswer(each.partition, error, found.log.as_fields, found.aborted))
    return TopicAnswer("" if by_id else key, key if by_id else None, tuple(partitions))


def _fetched_partition(
    catalog: Catalog, call: Call, topic: Topic, asked: Any, budget: FetchBudget
) -> tuple[ErrorCode, Fetched]:
    served = catalog.partition(topic.name, asked.partition)
    if served is None:
        return ErrorCode.unknown_topic_or_partition, NOTHING
    is_committed_only = call.field("isolation_level", 0) == COMMITTED_ONLY
    if not budget.is_long and served.may_take_long(asked.fetch_offset, is_committed_only=is_committed_only):
        raise TooMuchError
    read = partial(
        served.fetch,
        asked.fetch_offset,
        min(asked.partition_max_bytes, budget.size) if budget.files else 0,
        is_committed_only=is_committed_only,
        is_first=budget.is_empty,
    )
    found = attempt(served, read)
    if isinstance(found, Fetched) and found.records is None and served.refresh():
        found = attempt(served, read)
    if not isinstance(found, Fetched):
        return found, NOTHING
    if found.codec_id == CompressionCodec.ZSTD and call.version < ZSTD_SINCE:
        return ErrorCode.unsupported_compression_type, NOTHING
    if found.records is not None:
        budget.size -= size_of(found.records)
        budget.files -= size_of(found.records) >= MIN_SLICE_SIZE
        budget.is_empty = False
    return ErrorCode.none, found
