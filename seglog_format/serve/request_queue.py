"""The queue between processors and I/O threads: bounded, and cheap to pass."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.serve.processor import Waiting

    Job: TypeAlias = "Waiting | Callable[[], None]"


PIPELINED_TURN: Final = 8
"""One job in this many comes from a client that pipelines, if any waits."""


class RequestQueue:
    """What waits for an I/O thread. For use by several threads at once.

    Only one thread at a time runs Python, so that a second one is of use only while the first has to wait. One thread
    therefore takes all jobs as long as it gets on with them: the last that fell asleep is the first to be woken.
    Others are woken by `wake_another` and `hurry`. Each request passes here, so there is no lock around it all: steps
    stand in such an order that a job is seen by whoever puts it in, or by whoever is about to fall asleep.

    Requests of clients that pipeline, whose next request is here already, are taken after all others, except for every
    eighth job. Otherwise a hundred such clients make every other client wait for a hundred answers.

    Threads that offer at the same moment may take the last place together: there can be as many jobs too many as there
    are such threads.

    Args:
        length: so many jobs may wait.
        threads: so many take them.
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
        """Put a job in; False where there is no room.

        Args:
            job: to be taken.
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
        """Have one more thread look for jobs, unless none is asleep."""
        try:
            bell = self._asleep.pop()
        except IndexError:
            return
        bell.release()

    def hurry(self) -> None:
        """Do so if jobs wait and none was taken since the last call, which is for others to make now and then."""
        if len(self) and self._taken == self._seen:
            self.wake_another()
        self._seen = self._taken

    def take(self) -> Job | None:
        """The next job, as soon as there is one; None for a thread that has to end."""
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
        if not len(self):  # else it came before anybody could know that this thread is asleep
            bell.acquire()
            return
        with suppress(ValueError):  # somebody has woken this thread just now
            self._asleep.remove(bell)

    def clear(self) -> None:
        """Drop what waits."""
        self._jobs.clear()
        self._pipelined.clear()

    def end(self, threads: int) -> None:
        """End so many threads, each after the jobs offered before; those of clients that pipeline may be dropped."""
        for _ in range(threads):
            self._jobs.append(None)
            self.wake_another()
