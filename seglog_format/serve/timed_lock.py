"""A lock that measures how long it has been held."""

from __future__ import annotations

import time
from threading import Lock


class TimedLock:
    """A lock that measures how long it has been held. A context manager."""

    __slots__ = ("_lock", "_since")

    def __init__(self) -> None:
        self._lock = Lock()
        self._since = 0.0

    @property
    def held_seconds(self) -> float:
        """Seconds that the lock has been held; 0 if it is free."""
        since = self._since
        return time.monotonic() - since if since else 0.0

    def acquire(self, *, blocking: bool = True) -> bool:
        """Take the lock; return False if it is held and ``blocking`` is False."""
        if not self._lock.acquire(blocking):
            return False
        self._since = time.monotonic()
        return True

    def release(self) -> None:
        """Release the lock."""
        self._since = 0.0
        self._lock.release()

    def __enter__(self) -> None:  # each fetch takes it: no further calls
        self._lock.acquire()
        self._since = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._since = 0.0
        self._lock.release()
