"""One bounded queue for each class of request duration, so fast requests do not wait for slow ones.

Requests that read no log have threads of their own, and so have requests that read logs. Requests that may take long
share one more thread, so slow requests wait only for other slow requests.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.serve.limits import LIGHT_PRODUCE_SIZE, LIGHT_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.serve.connection import Waiting

    Job: TypeAlias = "Waiting | Callable[[], None]"


# -- the bounded queue between processors and I/O threads, with little locking -----------------------------------------


PIPELINED_TURN: Final = 8
"""One job in `PIPELINED_TURN` is of a client that pipelines, if any waits."""


class RequestQueue:
    """Jobs that wait for an I/O thread. Thread-safe.

    Only one thread at a time runs Python, so a second thread helps only while the first waits. One thread therefore
    takes all jobs as long as it does not block: the last that fell asleep is woken first. Others are woken by
    `wake_another` and `hurry`. Every request passes through this queue, so it takes no lock: steps are ordered such
    that each job is seen by the thread that adds it, or by a thread that is about to sleep.

    Requests of clients that pipeline, whose next request has already arrived, are taken last, except for every
    eighth job. Otherwise a hundred such clients make every other client wait for a hundred answers.

    The bound is approximate: concurrent offers may exceed it by one job per thread.

    Args:
        length: maximum number of waiting jobs.
        threads: number of threads that take them.
    """

    def __init__(self, length: int, threads: int = 1) -> None:
        self._jobs: deque[Job | None] = deque()
        self._pipelined: deque[Job] = deque()
        self._asleep: list[Lock] = []
        self._length = length
        self._threads = threads
        self._taken = self._seen = 0

    def __len__(self) -> int:
        return len(self._jobs) + len(self._pipelined)

    def offer(self, job: Job, *, is_pipelined: bool = False) -> bool:
        """Add a job; return False if the queue is full.

        Args:
            job: the job to add.
            is_pipelined: the client has already sent its next request.
        """
        if len(self) >= self._length:
            return False
        if is_pipelined:
            self._pipelined.append(job)
        else:
            self._jobs.append(job)
        if len(self._asleep) >= self._threads:
            self.wake_another()
        return True

    def wake_another(self) -> None:
        """Wake one more thread, if one is asleep."""
        try:
            bell = self._asleep.pop()
        except IndexError:
            return
        bell.release()

    def hurry(self) -> None:
        """Wake one more thread if jobs wait and none was taken since the last call; to be called from time to time."""
        if len(self) and self._taken == self._seen:
            self.wake_another()
        self._seen = self._taken

    def take(self) -> Job | None:
        """Return the next job as soon as there is one; None for a thread that must end."""
        while True:
            is_their_turn = self._pipelined and (not self._jobs or self._taken % PIPELINED_TURN == 0)
            try:
                job = (self._pipelined if is_their_turn else self._jobs).popleft()
            except IndexError:
                self._sleep()
            else:
                self._taken += 1
                return job

    def _sleep(self) -> None:
        bell = Lock()
        bell.acquire()
        self._asleep.append(bell)
        if not len(self):  # else a job came before this thread was listed as asleep
            bell.acquire()
            return
        with suppress(ValueError):  # another thread has just woken this one
            self._asleep.remove(bell)

    def clear(self) -> None:
        """Drop all waiting jobs."""
        self._jobs.clear()
        self._pipelined.clear()

    def end(self, threads: int) -> None:
        """End some threads, each after the jobs offered before; jobs of clients that pipeline may be dropped."""
        for _ in range(threads):
            self._jobs.append(None)
            self.wake_another()


# -- one queue for each class of request duration, so fast requests do not wait for slow ones --------------------------


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
