"""The memory that all connections may use together; the connection with the largest use over time is closed first."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.serve.limits import UNCOUNTED_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.serve.connection import Connection


class Holding(NamedTuple):
    """Bytes held for a connection, and since when."""

    size: int
    since: float


class Budget:
    """Accounts for bytes held for connections. Thread-safe.

    A client that sends its request and reads its answer holds few bytes for a short time. A client that sends half a
    request and waits, or does not read, holds more and more, counted as bytes times seconds. The connection with the
    greatest product is closed first.

    Args:
        limit: bytes for all connections together.
        clock: returns the time in seconds.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = Lock()
        self._held: dict[Connection, Holding] = {}
        self._used = 0
        self.closed_count = 0

    @property
    def used(self) -> int:
        """Bytes held now."""
        return self._used

    def update(self, connection: Connection) -> list[Connection]:
        """Record how many bytes are held for a connection.

        Returns:
            Connections to close so the others stay within the limit. They count as closed from now on.
        """
        units = connection.held_size // UNCOUNTED_SIZE
        if units == connection.counted:
            return []
        with self._lock:
            if connection.is_doomed:
                return []
            connection.counted = units
            self._note(connection, units * UNCOUNTED_SIZE)
            return self._over() if self._used > self._limit else []

    def _note(self, connection: Connection, size: int) -> None:
        known = self._held.pop(connection, None)
        self._used += size - (known.size if known else 0)
        if size:
            self._held[connection] = Holding(size, known.since if known else self._clock())

    def _over(self) -> list[Connection]:
        now, doomed = self._clock(), []
        while self._used > self._limit and self._held:
            worst = max(self._held, key=lambda each: self._burden(each, now))
            self._note(worst, 0)
            worst.is_doomed = True
            doomed.append(worst)
        self.closed_count += len(doomed)
        return doomed

    def _burden(self, connection: Connection, now: float) -> float:
        size, since = self._held[connection]
        return size * (now - since + 0.01)

    def release(self, connection: Connection) -> None:
        """Remove a closed connection."""
        with self._lock:
            self._note(connection, 0)
            connection.is_doomed = True
