"""The queue between processors and I/O threads: bounded, and cheap to pass."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.serve.processor import Waiting

    Job: TypeAlias = "Waiting | Callable[[], None]"


class RequestQueue:
    """What waits for an I/O thread. For use by several threads at once.

    Each request passes it, so it does without the locks of `queue.Queue`. Threads that offer at the same moment may
    take the last place together: there can be as many jobs too many as there are such threads.

    Args:
        length: so many jobs may wait.
    """

    def __init__(self, length: int) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._length = length

    def __len__(self) -> int:
        return self._jobs.qsize()

    def offer(self, job: Job) -> bool:
        """Put a job in; False where there is no room."""
        if self._jobs.qsize() >= self._length:
            return False
        self._jobs.put(job)
        return True

    def take(self) -> Job | None:
        """The next job, as soon as there is one; None for a thread that has to end."""
        return self._jobs.get()

    def end(self, threads: int) -> None:
        """Have so many threads end, each behind the jobs that were offered before."""
        for _ in range(threads):
            self._jobs.put(None)
