"""A processor: one thread that reads the requests of its connections and sends their answers."""

from __future__ import annotations

import select
import selectors
import socket
import time
from collections import deque
from threading import Thread
from typing import TYPE_CHECKING, Final

from seglog_format.serve.connection import Waiting
from seglog_format.serve.limits import UNCOUNTED_SIZE
from seglog_format.serve.slices import Chunk, SliceLostError, close_all
from seglog_format.serve.wire import UnreadableRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seglog_format.serve.connection import Budget, Connection
    from seglog_format.serve.lanes import Lanes
    from seglog_format.serve.limits import Settings


# -- detection of clients that close their connection while their answer is being made ---------------------------------


HAS_POLL: Final = hasattr(select, "poll")
HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""The poll event for a closed connection, even with unread bytes; other systems than Linux report full closure only."""


def disconnected(connections: Iterable[Connection]) -> list[Connection]:
    """Return the connections whose clients have closed them, whether or not bytes are unread."""
    if not HAS_POLL:
        return []
    poller, asked = select.poll(), {}
    for each in connections:
        asked[each.socket.fileno()] = each
        poller.register(each.socket, HANG_UP)
    return [asked[descriptor] for descriptor, _ in poller.poll(0)] if asked else []


# -- a processor -------------------------------------------------------------------------------------------------------


SWEEP_SECONDS: Final = 1.0
"""Interval at which idle connections are closed."""

HELD_SECONDS: Final = 0.01
"""Interval at which a refused request is offered again, and at which waiting requests are checked."""

AT_ONCE: Final = 16
"""Number of answers that are sent before other connections are read."""


class Processor:
    """Serves its share of the connections. All methods but `add`, `hand_over` and `stop` run in its own thread."""

    def __init__(
        self, number: int, requests: Lanes, budget: Budget, settings: Settings, on_closed: Callable[[], None]
    ) -> None:
        """Start without connections.

        Args:
            number: of the thread.
            requests: the queues of requests; while one is full, its connections are not read.
            budget: the memory of all connections.
            settings: hold the idle timeout of connections.
            on_closed: called when a connection has been closed.
        """
        self._requests = requests
        self._budget = budget
        self._idle_seconds = settings.idle_seconds
        self._gone_seconds = settings.limits.gone_seconds
        self._on_closed = on_closed
        self._selector = selectors.DefaultSelector()
        self._waking, self._woken = socket.socketpair()
        for end in (self._waking, self._woken):
            end.settimeout(0)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._arrived: deque[Connection] = deque()
        self._answered: deque[tuple[Connection, list[Chunk] | None]] = deque()
        self._held: deque[Waiting] = deque()
        self._is_woken = False
        self._connections: set[Connection] = set()
        self._is_draining = False
        self._is_stopped = False
        self._closed_received = self._closed_sent = 0
        self._thread = Thread(target=self._run, name=f"seglog-processor-{number}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, connection: Connection) -> None:
        """Add a new connection."""
        connection.processor = self
        self._arrived.append(connection)
        self._wake()

    def hand_over(self, connection: Connection, chunks: list[Chunk] | None) -> None:
        """Queue the answer of a connection."""
        if self._is_stopped:
            close_all(chunks or ())
            return
        self._answered.append((connection, chunks))
        self._wake()

    def drain(self) -> None:
        """Accept no more requests; those accepted before are answered."""
        self._is_draining = True
        self._wake()

    @property
    def is_drained(self) -> bool:
        """Return whether all accepted requests have been answered, and the answers sent."""
        return not self._answered and not any(connection.is_busy for connection in list(self._connections))

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes received and sent since the start."""
        open_now = list(self._connections)
        received = self._closed_received + sum(each.received_size for each in open_now)
        return received, self._closed_sent + sum(each.sent_size for each in open_now)

    def first_to_go(self, rank: Callable[[Connection], tuple[int, float]]) -> Connection | None:
        """Return the connection of this thread with the lowest rank; None if there is none."""
        candidates = [each for each in list(self._connections) if not each.is_doomed]
        return min(candidates, key=rank, default=None)

    def account(self, connection: Connection) -> None:
        """Report to the budget how much a connection holds, and close those over the limit. Thread-safe."""
        for each in self._budget.update(connection):
            each.end()

    def stop(self, seconds: float) -> None:
        """Close all connections and end the thread; wait at most `seconds`."""
        self._is_stopped = True
        self._wake()
        self._thread.join(seconds)

    def _wake(self) -> None:
        """Wake the thread, unless an earlier call is still pending."""
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self._waking.send(b"\0")
        except OSError:  # the pipe is full, so the thread wakes anyway; or it is closed, as the thread has ended
            return

    def _run(self) -> None:
        swept_at = hurried_at = time.monotonic()
        while not self._is_stopped:
            is_waiting = bool(self._held or self._requests)
            seconds = 0 if self._answered else HELD_SECONDS if is_waiting else SWEEP_SECONDS
            for key, events in self._selector.select(seconds):
                if key.data is None:
                    self._take_woken()
                else:
                    self._serve(key.data, events)
                if self._answered:  # some may have to be closed: the budget counts them no longer
                    self._take_answered()
            self._take_arrived()
            self._take_answered()
            self._offer_held()
            now = time.monotonic()
            if is_waiting and now - hurried_at >= HELD_SECONDS:
                hurried_at = now
                self._requests.hurry()
            if now - swept_at >= SWEEP_SECONDS:
                swept_at = now
                self._sweep(now)
        self._close_everything()

    def _take_woken(self) -> None:
        """Take the answers that other threads queued; clear the wake-up, so the next one is noticed."""
        self._take_answered()  # before any other system call, which would let another thread run first
        self._woken.recv(1 << 12)
        self._is_woken = False

    def _take_arrived(self) -> None:
        while self._arrived:
            connection = self._arrived.popleft()
            self._connections.add(connection)
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.awaited = selectors.EVENT_READ
            if connection.is_doomed:  # the call to close it came before the connection itself
                self._close(connection)

    def _take_answered(self) -> None:
        for _ in range(min(len(self._answered), AT_ONCE)):  # answers may arrive without end
            connection, chunks = self._answered.popleft()
            if chunks is None:
                self._close(connection)
                continue
            connection.answer(chunks)
            if not connection.is_closed:
                self._serve(connection, selectors.EVENT_WRITE)

    def _serve(self, connection: Connection, events: int) -> None:
        """Read or write as far as possible now; an error ends this connection and no other."""
        if connection.is_closed:  # since the selector reported it
            return
        try:
            if events & selectors.EVENT_WRITE and connection.is_sending:
                connection.send()
            if events & selectors.EVENT_READ and connection.is_busy:
                self._await(connection, 0)
                if connection.has_ended():
                    connection.gone_at = time.monotonic()
            elif events & selectors.EVENT_READ and not connection.receive():
                self._close(connection)
                return
            self._take_request(connection)
        except (OSError, SliceLostError, UnreadableRequestError):
            self._close(connection)

    def _take_request(self, connection: Connection) -> None:
        frame = None if self._is_draining else connection.take_request()
        if connection.is_sending:
            self._await(connection, selectors.EVENT_WRITE)
        elif not connection.is_busy or connection.awaited == selectors.EVENT_WRITE:
            self._await(connection, selectors.EVENT_READ)
        if connection.held_size // UNCOUNTED_SIZE != connection.counted:
            self.account(connection)
        if frame is not None and not connection.is_doomed:  # last: the thread that takes it wants this core
            connection.gone_at = None
            waiting = connection.waiting = Waiting(self, connection, frame)
            self._offer(waiting)

    def _await(self, connection: Connection, wanted: int) -> None:
        """Wait for the next event of a connection.

        While a request is being answered, nothing is read, and most clients send nothing. So the selector keeps waiting
        for bytes, which needs no system call, and stops when some arrive (``wanted`` is 0).
        """
        awaited, connection.awaited = connection.awaited, wanted
        if awaited == wanted:
            return
        if not awaited:
            self._selector.register(connection.socket, wanted, connection)
        elif wanted:
            self._selector.modify(connection.socket, wanted, connection)
        else:
            self._selector.unregister(connection.socket)

    def _offer(self, waiting: Waiting) -> None:
        if not waiting.is_gone() and not self._requests.offer(waiting):
            self._held.append(waiting)

    def _offer_held(self) -> None:
        for _ in range(len(self._held)):
            self._offer(self._held.popleft())

    def _sweep(self, now: float) -> None:
        """Close idle connections; those whose answer is being made may be kept."""
        busy = [each for each in self._connections if each.is_busy and not each.is_sending]
        for connection in disconnected(busy):
            connection.gone_at = connection.gone_at or now
        for connection in busy:
            if connection.gone_at is not None and now - connection.gone_at > self._gone_seconds:
                self._close(connection)
        for connection in self._connections.difference(busy):
            if now - connection.active_at > self._idle_seconds:
                self._close(connection)

    def _close(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._await(connection, 0)
            self._closed_received += connection.received_size
            self._closed_sent += connection.sent_size
            connection.close()
            self._budget.release(connection)
            self._on_closed()

    def _close_everything(self) -> None:
        self._take_arrived()
        for connection in list(self._connections):
            self._close(connection)
        for _, chunks in self._answered:
            close_all(chunks or ())
        self._selector.close()
        self._waking.close()
        self._woken.close()
