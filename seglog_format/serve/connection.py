"""Connections: each receives bytes until a request is whole, and sends its answer; together they have a budget."""

from __future__ import annotations

import socket
import time
from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from seglog_format.serve.limits import OPEN_FILE_SIZE, UNCOUNTED_SIZE
from seglog_format.serve.slices import Chunk, FileSlice, close_all
from seglog_format.serve.wire import MIN_REQUEST_SIZE, SIZE, UnreadableRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seglog_format.serve.calls import Address


# -- the memory that all connections may use together; the connection with the largest use over time is closed first ---


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


# -- one connection: receives bytes until a request is whole, and sends its answer -------------------------------------


RECEIVE_SIZE: Final = 1 << 16

SILENT, IDLE, NEW, RECENT = range(4)
"""Ranks of connections, in the order in which they are closed to make room for new ones; `RECENT` ones never are."""

NEW_SECONDS: Final = 0.1
"""Time that a connection counts as new: its first request may still be on its way."""

MORE_COMES: Final = getattr(socket, "MSG_MORE", 0)
"""Flag of `send`: more data follows at once, so the system sends both in one packet."""


class AnswerTaker(Protocol):
    """The part of a processor that its connections use: it sends answers, and accounts for memory."""

    def hand_over(self, connection: Connection, chunks: list[Chunk] | None) -> None:
        """Take an answer, from any thread; None closes the connection."""

    def account(self, connection: Connection) -> None:
        """Count what a connection holds, from any thread."""


class Waiting:
    """A request in the queue, with its connection and processor.

    Attributes:
        processor: the processor that sends its answer.
        connection: the connection that it came from.
        frame: its bytes.
        is_long: whether it belongs to the queue of long requests.
    """

    __slots__ = ("connection", "frame", "is_long", "processor")

    def __init__(self, processor: AnswerTaker, connection: Connection, frame: bytes) -> None:
        self.processor = processor
        self.connection = connection
        self.frame = frame
        self.is_long = False

    def answer(self, chunks: list[Chunk] | None) -> None:
        """Hand an answer back, from any thread; None closes the connection."""
        self.processor.hand_over(self.connection, chunks)

    def is_gone(self) -> bool:
        """Return whether the connection is closed, so no answer is needed."""
        return self.connection.is_closed

    def take(self, size: int) -> None:
        """Count `size` more bytes for the connection until the request is answered; callable from any thread."""
        self.connection.extra_size = size
        self.processor.account(self.connection)


class Connection:
    """A non-blocking socket with its buffers. Belongs to the thread of one processor.

    While a request is being answered, nothing is read: answers are sent in the order of their requests, and a client
    that does not read its answers cannot send more requests.

    Attributes:
        socket: to the client.
        address: host and port that the client connected to.
        is_busy: a request is being answered.
        is_closed: the socket is closed.
        awaited: selector events that its processor waits for.
        active_at: time of the last received request or sent part of an answer.
        has_asked: a whole request has been received.
        processor: the processor that it belongs to.
        gone_at: time at which the processor noticed, during an answer, that the client had closed it; else None.
        waiting: the request that is being answered.
        extra_size: memory that the answer takes, besides the bytes of the request.
        counted: the `held_size` last reported to the budget, in its steps.
        is_doomed: it must be closed, and no longer counts in the budget.
        received_size: bytes received.
        sent_size: bytes sent.
    """

    def __init__(self, connected: socket.socket, address: Address, max_request_size: int) -> None:
        self.socket = connected
        self.address = address
        self.is_busy = False
        self.is_closed = False
        self.awaited = 0
        self.active_at = time.monotonic()
        self.has_asked = False
        self.processor: AnswerTaker | None = None
        self.gone_at: float | None = None
        self.waiting: Waiting | None = None
        self.extra_size = 0
        self.counted = 0
        self.is_doomed = False
        self._max_request_size = max_request_size
        self.received_size = 0
        self.sent_size = 0
        self._received = bytearray()
        self._sending: deque[Chunk | memoryview] = deque()
        self._sending_size = 0
        self._request_size = 0

    @property
    def held_size(self) -> int:
        """Bytes of memory that it uses, plus a fixed amount for each file that it keeps open."""
        return len(self._received) + self._request_size + self.extra_size + self._sending_size

    @property
    def is_sending(self) -> bool:
        """Return whether an answer is being sent."""
        return bool(self._sending)

    def rank(self, now: float, least_idle_seconds: float) -> tuple[int, float]:
        """Return a sort key: the connection with the lowest one is closed first to make room for a new one.

        Connections that never sent a request come first, except new ones; then those that have been idle long enough;
        then new ones. Within a rank the one that has been idle the longest comes first.

        Args:
            now: of the monotonic clock, in seconds.
            least_idle_seconds: after how long without traffic a connection counts as idle.
        """
        idle_seconds = now - self.active_at
        if self.has_asked:
            return (IDLE if idle_seconds >= least_idle_seconds else RECENT), self.active_at
        return (SILENT if idle_seconds >= NEW_SECONDS else NEW), self.active_at

    @property
    def has_more(self) -> bool:
        """Return whether a part of the next request has arrived."""
        return bool(self._received)

    def end(self) -> None:
        """Make the processor close the connection; callable from any thread."""
        self.is_doomed = True
        if self.processor is not None:
            self.processor.hand_over(self, None)

    def receive(self) -> bool:
        """Read the bytes that have arrived.

        Returns:
            False if the client has closed the connection.

        Raises:
            OSError: from the socket.
        """
        try:
            data = self.socket.recv(RECEIVE_SIZE)
        except BlockingIOError:
            return True
        self._received += data
        self.received_size += len(data)
        return bool(data)

    def take_request(self) -> bytes | None:
        """Return the next request if it is whole; the connection is busy from then on.

        Raises:
            UnreadableRequestError: the bytes are no request, or the request is too large.
        """
        if self.is_busy or len(self._received) < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self._received)
        if not MIN_REQUEST_SIZE <= size <= self._max_request_size:
            msg = f"a request of {size} bytes"
            raise UnreadableRequestError(msg)
        end = SIZE.size + size
        if len(self._received) < end:
            return None
        with memoryview(self._received) as received:
            request = bytes(received[SIZE.size : end])
        if len(self._received) == end:
            self._received = bytearray()
        else:
            del self._received[:end]
        self._request_size = size
        self.is_busy = self.has_asked = True
        self.active_at = time.monotonic()
        return request

    def answer(self, chunks: Iterable[Chunk]) -> None:
        """Queue an answer for sending; drop it if the connection is closed. An empty answer only ends the wait."""
        if self.is_closed:
            close_all(chunks)
        else:
            self._sending.extend(chunks)
            self._sending_size = sum(map(_held_size, self._sending))
            self._request_size = self.extra_size = 0
            self.waiting = None
            self.is_busy = self.is_sending
            self.active_at = time.monotonic()

    def send(self) -> None:
        """Send as much as the socket accepts now.

        Raises:
            OSError: from the socket.
            SliceLostError: the log has become shorter than the announced answer.
        """
        try:
            while self._sending:
                self._send_from(self._sending[0])
                self.active_at = time.monotonic()
        except BlockingIOError:
            return
        self.is_busy = False

    def _send_from(self, chunk: Chunk | memoryview) -> None:
        if isinstance(chunk, FileSlice):
            self.sent_size += chunk.send(self.socket)
            if chunk.size:
                return
            chunk.close()
            self._sending_size -= OPEN_FILE_SIZE
        else:
            sent = self.socket.send(chunk, MORE_COMES if len(self._sending) > 1 else 0)
            self.sent_size += sent
            if sent < len(chunk):
                self._sending[0] = memoryview(chunk)[sent:]  # copying the rest for each part would take quadratic time
                return
            self._sending_size -= _whole_size(chunk)
        self._sending.popleft()

    def close(self) -> None:
        """Close it; a second call does nothing."""
        self.is_closed = True
        self.socket.close()
        close_all(self._sending)
        self._sending.clear()
        self._received.clear()
        self._sending_size = self._request_size = self.extra_size = 0
        if self.waiting is not None:
            self.waiting.frame = b""  # the request is no longer answered

    def has_ended(self) -> bool:
        """Return whether the client has closed its side and all bytes were read; consume nothing."""
        try:
            return not self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False


def _held_size(chunk: Chunk | memoryview) -> int:
    return OPEN_FILE_SIZE if isinstance(chunk, FileSlice) else _whole_size(chunk)


def _whole_size(chunk: bytes | memoryview) -> int:
    """Return the size of a chunk in memory, parts already sent included."""
    return memoryview(chunk.obj).nbytes if isinstance(chunk, memoryview) else len(chunk)
