"""Queues for requests that take differently long, so that nobody waits behind one that takes longer.

Requests that never look into a log have threads of their own, and so have those that do; everything that may take
long waits for one thread more. Who sends what takes long waits for others who do, and for nobody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.serve.limits import LIGHT_PRODUCE_SIZE, LIGHT_SIZE
from seglog_format.serve.request_queue import RequestQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.serve.processor import Waiting
    from seglog_format.serve.request_queue import Job

PRODUCE: Final = 0
LOG_KEYS: Final = frozenset({PRODUCE, 1, 2, 23})
"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch: the APIs that look into logs."""

QUICK_THREADS: Final = 2


class TooMuchError(Exception):
    """A request takes longer than those that it is among; it has to be answered again, among the long ones."""


class Lanes:
    """The queues between processors and I/O threads. For use by several threads at once.

    Attributes:
        quick: requests that look into no log.
        logs: requests that do.
        long: requests that may take long, of both kinds.

    Args:
        length: so many requests may wait in each.
        threads: so many take those that look into logs.
    """

    def __init__(self, length: int, threads: int) -> None:
        self.quick = RequestQueue(length, QUICK_THREADS)
        self.logs = RequestQueue(length, threads)
        self.long = RequestQueue(length)
        self._all = ((self.logs, threads), (self.quick, QUICK_THREADS), (self.long, 1))

    def __len__(self) -> int:
        return sum(len(queue) for queue, _ in self._all)

    def threads(self) -> Iterator[RequestQueue]:
        """For each thread that has to run, the queue that it takes from."""
        for queue, count in self._all:
            yield from [queue] * count

    def offer(self, waiting: Waiting) -> bool:
        """Put a request where it belongs; False where there is no room."""
        return self._queue_of(waiting).offer(waiting, is_pipelined=waiting.connection.has_more)

    def _queue_of(self, waiting: Waiting) -> RequestQueue:
        if waiting.is_long:
            return self.long
        frame = waiting.frame
        key = frame[0] << 8 | frame[1]
        if len(frame) > LIGHT_SIZE and (key != PRODUCE or len(frame) > LIGHT_PRODUCE_SIZE):
            return self.long
        return self.logs if key in LOG_KEYS else self.quick

    def submit(self, job: Job, *, is_long: bool) -> bool:
        """Have a thread call a function, soon; False where there is no room."""
        queue = self.long if is_long else self.logs
        if not queue.offer(job):
            return False
        queue.wake_another()  # no processor may come by soon to see whether it is taken
        return True

    def hurry(self) -> None:
        """See `RequestQueue.hurry`."""
        for queue, _ in self._all:
            queue.hurry()

    def end(self) -> None:
        """Have all threads end; what still waits is dropped."""
        for queue, threads in self._all:
            queue.clear()
            queue.end(threads)
