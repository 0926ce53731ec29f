"""One queue for each class of request duration, so fast requests do not wait for slow ones.

Requests that read no log have threads of their own, and so have requests that read logs. Requests that may take long
share one more thread, so slow requests wait only for other slow requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.serve.limits import LIGHT_PRODUCE_SIZE, LIGHT_SIZE
from seglog_format.serve.request_queue import RequestQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.serve.connection import Waiting
    from seglog_format.serve.request_queue import Job

PRODUCE: Final = 0
LOG_KEYS: Final = frozenset({PRODUCE, 1, 2, 23})
"""Keys of the APIs that read or write logs: Produce, Fetch, ListOffsets and OffsetForLeaderEpoch."""

FAST_THREADS: Final = 2


class TooMuchError(Exception):
    """A request takes too long for its queue; it must be answered again from the queue of long requests."""


class Lanes:
    """The queues between processors and I/O threads. Thread-safe.

    Attributes:
        fast: requests that read no log.
        logs: requests that read logs.
        long: requests that may take long, of both kinds.

    Args:
        length: maximum number of requests in each.
        threads: number of threads for requests that read logs.
    """

    def __init__(self, length: int, threads: int) -> None:
        self.fast = RequestQueue(length, FAST_THREADS)
        self.logs = RequestQueue(length, threads)
        self.long = RequestQueue(length)
        self._all = ((self.logs, threads), (self.fast, FAST_THREADS), (self.long, 1))

    def __len__(self) -> int:
        return sum(len(queue) for queue, _ in self._all)

    def threads(self) -> Iterator[RequestQueue]:
        """Yield, for each thread to start, the queue that it takes from."""
        for queue, count in self._all:
            yield from [queue] * count

    def offer(self, waiting: Waiting) -> bool:
        """Add a request to its queue; return False if that is full."""
        return self._queue_of(waiting).offer(waiting, is_pipelined=waiting.connection.has_more)

    def _queue_of(self, waiting: Waiting) -> RequestQueue:
        if waiting.is_long:
            return self.long
        frame = waiting.frame
        key = frame[0] << 8 | frame[1]
        if len(frame) > LIGHT_SIZE and (key != PRODUCE or len(frame) > LIGHT_PRODUCE_SIZE):
            return self.long
        return self.logs if key in LOG_KEYS else self.fast

    def submit(self, job: Job, *, is_long: bool) -> bool:
        """Make a thread call a function soon; return False if the queue is full."""
        queue = self.long if is_long else self.logs
        if not queue.offer(job):
            return False
        queue.wake_another()  # processors call `hurry`, but maybe not soon
        return True

    def hurry(self) -> None:
        """Call `RequestQueue.hurry` for each queue."""
        for queue, _ in self._all:
            queue.hurry()

    def end(self) -> None:
        """End all threads; pending requests are dropped."""
        for queue, threads in self._all:
            queue.clear()
            queue.end(threads)
