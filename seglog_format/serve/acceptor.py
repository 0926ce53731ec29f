"""The acceptor: one thread that takes connections and hands them to the processors in turn."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from itertools import cycle
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from seglog_format.serve.calls import Address
from seglog_format.serve.connection import RECENT, Connection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.serve.processor import Processor
    from seglog_format.serve.settings import Settings

BACKLOG: Final = 4096
"""Connections that the system queues until they are accepted; a client beyond that retries after a second."""

POLL_SECONDS: Final = 0.2
STOP_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.05
"""Pause after a failed `accept`, for example without free file descriptors."""


class Acceptor:
    """Accepts connections on one port.

    Attributes:
        address: host and port that it listens on.
        accepted_count: connections accepted since the start.
        refused_count: connections refused because there were too many.
        displaced_count: connections closed to make room for new ones.
    """

    def __init__(self, settings: Settings) -> None:
        """Bind the port.

        Raises:
            OSError: the port cannot be bound.
        """
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        self._listener = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
        self._listener.settimeout(POLL_SECONDS)
        self.address = Address(*self._listener.getsockname()[:2])
        self._settings = settings
        self._lock = Lock()
        self._count = 0
        self.accepted_count = self.refused_count = self.displaced_count = 0
        self._is_stopped = False
        self._thread: Thread | None = None
        self._processors: Sequence[Processor] = ()

    @property
    def connection_count(self) -> int:
        """Number of open connections."""
        return self._count

    def start(self, processors: Sequence[Processor]) -> None:
        """Start the thread that accepts connections."""
        self._thread = Thread(target=self._run, args=(processors,), name="seglog-acceptor", daemon=True)
        self._thread.start()

    def connection_closed(self) -> None:
        """Note that an open connection was closed."""
        with self._lock:
            self._count -= 1

    def stop(self) -> None:
        """Stop accepting connections."""
        self._is_stopped = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
        self._listener.close()

    def _run(self, processors: Sequence[Processor]) -> None:
        self._processors = processors
        in_turn = cycle(processors)
        while not self._is_stopped:
            try:
                connected, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                time.sleep(PAUSE_SECONDS)
                continue
            connection = self._welcome(connected)
            if connection is not None:
                next(in_turn).add(connection)

    def _welcome(self, connected: socket.socket) -> Connection | None:
        """Return the accepted connection; None if there are too many, or the client has closed it already."""
        if _is_gone(connected):  # many of those are skipped fast, so the system's queue stays short
            connected.close()
            return None
        with self._lock:
            if self._count >= self._settings.max_connections and not self._make_room():
                connected.close()
                self.refused_count += 1
                return None
            self.accepted_count += 1
            self._count += 1
        return self._connection(connected)

    def _make_room(self) -> bool:
        """Close the connection that has been idle the longest; return False if none is idle long enough."""
        now, least_idle_seconds = time.monotonic(), self._settings.limits.least_idle_seconds

        def rank(connection: Connection) -> tuple[int, float]:
            return connection.rank(now, least_idle_seconds)

        found = [each for processor in self._processors if (each := processor.first_to_go(rank)) is not None]
        first = min(found, key=rank, default=None)
        if first is None or rank(first)[0] == RECENT:
            return False
        first.end()
        self.displaced_count += 1
        return True

    def _connection(self, connected: socket.socket) -> Connection | None:
        try:
            connected.settimeout(0)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            address = Address(*connected.getsockname()[:2])
        except OSError:
            with suppress(OSError):
                connected.close()
            self.connection_closed()
            return None
        return Connection(connected, address, self._settings.max_request_size)


def _is_gone(connected: socket.socket) -> bool:
    """Return whether the client has closed the connection before sending a request."""
    try:
        connected.settimeout(0)
        return not connected.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
