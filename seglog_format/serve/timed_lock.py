"""A lock that tells how long somebody has had it."""

from __future__ import annotations

import time
from threading import Lock


class TimedLock:
    """A lock. A context manager."""

    __slots__ = ("_lock", "_since")

    def __init__(self) -> None:
        self._lock = Lock()
        self._since = 0.0

    @property
    def held_seconds(self) -> float:
        """How long it has been held; 0 where nobody holds it."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take it; False where somebody else has it and this does not wait."""
        if not self._lock.acquire(blocking):
            return False
        self._since = time.monotonic()
        return True

    def release(self) -> None:
        """Let others have it."""
        self._since = 0.0
        self._lock.release()

    def __enter__(self) -> None:  # each fetch comes here: no call more than has to be
        self._lock.acquire()
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = 0.0
        self._lock.release()
