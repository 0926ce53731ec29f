"""The server: acceptor, processors, the queues, and the I/O threads that answer."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from itertools import cycle
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from kio.schema.errors import ErrorCode

from seglog_format.serve.calls import Address, Call, Services
from seglog_format.serve.connection import RECENT, Budget, Connection, Waiting
from seglog_format.serve.delays import Arrivals, Delays
from seglog_format.serve.lanes import Lanes, TooMuchError
from seglog_format.serve.limits import ITEM_SIZE, LIGHT_ITEMS
from seglog_format.serve.metrics import Load, Metrics
from seglog_format.serve.processor import HELD_SECONDS, Processor
from seglog_format.serve.wire import Request, UnreadableRequestError, decode_request, encode_response, peek

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from seglog_format.serve.catalog import Catalog
    from seglog_format.serve.groups import Coordinator
    from seglog_format.serve.kept_offsets import OffsetsByGroup
    from seglog_format.serve.lanes import Job, RequestQueue
    from seglog_format.serve.limits import Settings
    from seglog_format.serve.slices import Chunk
    from seglog_format.serve.wire import Envelope
    from seglog_format.serve.writing import Writers


# -- the supported APIs and versions, and the functions that answer them ----------------------------------------------


API_VERSIONS: Final = 18


class Api(NamedTuple):
    """An API: the module and the function that answer it, and the lowest and the highest version of its messages."""

    module: str
    name: str
    lowest: int
    highest: int

    def answer(self, services: Services, call: Call) -> None:
        """Answer a request of a supported version."""
        _loaded(self.module, self.name)(services, call)


@cache
def _loaded(module: str, name: str) -> Callable[[Services, Call], None]:
    function: Callable[[Services, Call], None] = getattr(import_module(f"seglog_format.serve.{module}"), name)
    return function


def api_versions(_services: Services, call: Call) -> None:
    """Answer ApiVersions: the APIs and versions that this server supports."""
    call.respond(versions(ErrorCode.none))


def versions(error: ErrorCode) -> dict[str, object]:
    """Return the answer to ApiVersions, of any version."""
    keys = [
        {"api_key": key, "min_version": api.lowest, "max_version": api.highest} for key, api in sorted(APIS.items())
    ]
    return {"throttle_time": 0, "error_code": error, "api_keys": keys}


APIS: Final[Mapping[int, Api]] = {
    0: Api("api_produce", "produce", 3, 12),
    1: Api("api_fetch", "fetch", 4, 17),
    2: Api("api_log", "list_offsets", 1, 11),
    3: Api("api_log", "metadata", 0, 13),
    8: Api("api_groups", "offset_commit", 2, 9),
    9: Api("api_groups", "offset_fetch", 1, 9),
    10: Api("api_log", "find_coordinator", 0, 6),
    11: Api("api_groups", "join_group", 0, 9),
    12: Api("api_groups", "heartbeat", 0, 4),
    13: Api("api_groups", "leave_group", 0, 5),
    14: Api("api_groups", "sync_group", 0, 5),
    API_VERSIONS: Api("server", "api_versions", 0, 4),
    22: Api("api_produce", "init_producer_id", 0, 5),
    23: Api("api_log", "offset_for_leader_epoch", 2, 4),
    60: Api("api_log", "describe_cluster", 0, 2),
}
"""Supported APIs by API key; the server refuses requests of any other API or version."""


# -- the acceptor: one thread that takes connections and hands them to the processors in turn --------------------------


BACKLOG: Final = 4096
"""Connections that the system queues until they are accepted; a client beyond that retries after a second."""

ACCEPT_POLL_SECONDS: Final = 0.2
ACCEPT_STOP_SECONDS: Final = 1.0
PAUSE_SECONDS: Final = 0.05
"""Pause after a failed `accept`, for example without free file descriptors."""


class Acceptor:
    """Accepts connections on one port.

    Attributes:
        address: host and port that it listens on.
        accepted_count: connections accepted since the start.
        refused_count: connections refused because there were too many.
    """

    def __init__(self, settings: Settings) -> None:
        """Bind the port.

        Raises:
            OSError: the port cannot be bound.
        """
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        self._listener = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
        self._listener.settimeout(ACCEPT_POLL_SECONDS)
        self.address = Address(*self._listener.getsockname()[:2])
        self._settings = settings
        self._lock = Lock()
        self._count = 0
        self.accepted_count = self.refused_count = 0
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
            self._thread.join(ACCEPT_STOP_SECONDS)
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


# -- the server --------------------------------------------------------------------------------------------------------


DRAIN_SECONDS: Final = 2.0
"""Time that `stop` waits for pending answers."""

STOP_SECONDS: Final = 3.5
"""Time that `stop` waits for threads to end; closing logs and files is not limited."""

KEEP_SECONDS: Final = 1.0
"""Time that `stop` waits for committed offsets to be written."""

POLL_SECONDS: Final = 0.01


class Server:
    """Serves a catalogue until it is stopped. A context manager.

    Attributes:
        address: host and port that it listens on.
        metrics: its counters.
        committed_offsets: offsets at which groups start that have not committed any here; to be set before `start`.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        on_failure: Callable[[str], None],
        writers: Writers | None = None,
        metrics: Metrics | None = None,
        state: Path | None = None,
    ) -> None:
        """Bind the port; requests are answered after `start`.

        Args:
            catalog: the topics to serve.
            settings: address, threads and limits.
            on_failure: called with a message about a request or a delayed call that failed because of a defect here.
            writers: of the partitions, closed by `stop`; None for a read-only server.
            metrics: the counters to use.
            state: directory that keeps committed offsets over a restart; None to keep them in memory only.

        Raises:
            OSError: the port cannot be bound.
        """
        self._acceptor = Acceptor(settings)
        self.address: Address = self._acceptor.address
        self._catalog = catalog
        self._tell_failure = on_failure
        self._limits = settings.limits
        self._state = state
        self.committed_offsets: OffsetsByGroup = {}
        self._delays = Delays(self._on_failure)
        self.metrics = metrics or Metrics()
        self._coordinator: Coordinator | None = None
        self._making = Lock()
        self._services = Services(
            catalog, self._coordinate, self._delays, Arrivals(), self._submit, settings.limits, writers
        )
        self._requests = Lanes(settings.queue_length, settings.io_threads)
        self._budget = Budget(settings.limits.held_size)
        self._processors = [
            Processor(number, self._requests, self._budget, settings, self._acceptor.connection_closed)
            for number in range(settings.processors)
        ]
        self._threads = [
            Thread(target=self._answer_requests, args=(queue,), name=f"seglog-io-{number}", daemon=True)
            for number, queue in enumerate(self._requests.threads())
        ]

    def _coordinate(self) -> Coordinator:
        """Return the one coordinator of groups, created and imported at its first use."""
        from seglog_format.serve.groups import Coordinator  # noqa: PLC0415 - a start does without it

        with self._making:
            if self._coordinator is None:
                coordinator = Coordinator(self._delays, limits=self._limits)
                if self._state is not None:
                    coordinator.kept.keep_in(self._state, self._tell_failure)
                left_out = coordinator.kept.start_at(self.committed_offsets)
                if left_out:
                    self._tell_failure(f"no room for {left_out} committed offsets of groups: they are left out")
                self._coordinator = coordinator
            return self._coordinator

    @property
    def load(self) -> Load:
        """The current load."""
        traffic = [each.traffic for each in self._processors]
        return Load(
            connections=self._acceptor.connection_count,
            accepted=self._acceptor.accepted_count,
            refused=self._acceptor.refused_count,
            waiting=len(self._requests),
            received=sum(received for received, _ in traffic),
            sent=sum(sent for _, sent in traffic),
        )

    def start(self) -> None:
        """Start to answer requests."""
        self._delays.start()
        for processor in self._processors:
            processor.start()
        for thread in self._threads:
            thread.start()
        self._acceptor.start(self._processors)

    def stop(self) -> None:
        """Close the port, answer pending requests, then close all connections and end all threads.

        Pending work gets a few seconds. A thread that needs longer is abandoned with its result.
        """
        deadline = time.monotonic() + STOP_SECONDS
        self._acceptor.stop()
        self._drain()
        for processor in self._processors:
            processor.stop(max(0.0, deadline - time.monotonic()))
        self._requests.end()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._delays.stop()
        if self._coordinator is not None:
            self._coordinator.kept.end(KEEP_SECONDS)
        self._catalog.close()
        if self._services.writers is not None:
            self._services.writers.close()

    def _drain(self) -> None:
        for processor in self._processors:
            processor.drain()
        self._services.arrivals.end()
        deadline = time.monotonic() + DRAIN_SECONDS
        while time.monotonic() < deadline and not all(each.is_drained for each in self._processors):
            time.sleep(POLL_SECONDS)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _on_failure(self, message: str) -> None:
        self.metrics.count_failure()
        self._tell_failure(message)

    def _submit(self, job: Job, is_long: bool) -> None:  # noqa: FBT001 - handed on by position
        """Make an I/O thread call a function, as soon as there is room in the queue."""
        if not self._requests.submit(job, is_long=is_long):
            self._delays.after(HELD_SECONDS, partial(self._submit, job, is_long))

    def _answer_requests(self, requests: RequestQueue) -> None:
        while (job := requests.take()) is not None:
            if isinstance(job, Waiting):
                self._answer_request(job)
            else:
                self._refresh(job)

    def _refresh(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - as below; a waiting client is closed when its connection is idle
            self._on_failure(f"a request that waited was not answered: {type(error).__name__}: {error}")

    def _answer_request(self, waiting: Waiting) -> None:
        if waiting.is_gone():
            return
        try:
            self._answer(waiting)
        except UnreadableRequestError:
            waiting.answer(None)
        except TooMuchError:
            waiting.is_long = True
            self._submit(waiting, waiting.is_long)
        except Exception as error:  # noqa: BLE001 - a fault of ours ends one connection, not the server
            waiting.answer(None)
            self._on_failure(f"a request was not answered: {type(error).__name__}: {error}")

    def _answer(self, waiting: Waiting) -> None:
        key, version, correlation_id = start = peek(waiting.frame)
        api = APIS.get(key)
        if api is None or not api.lowest <= version <= api.highest:
            waiting.answer(_refusal(key, correlation_id))
            return
        request = decode_request(waiting.frame, self._limits.request_items, start)
        if request.items > LIGHT_ITEMS:
            if not waiting.is_long:
                raise TooMuchError
            waiting.take(request.items * ITEM_SIZE)
        self.metrics.count_request(api.name)
        call = Call(
            version=version,
            client_id=request.client_id,
            body=request.body,
            address=waiting.connection.address,
            respond=partial(self._respond, waiting, request),
            fill=partial(_fill, waiting, correlation_id),
            finish=partial(waiting.answer, []),
            hang_up=partial(waiting.answer, None),
            is_gone=waiting.is_gone,
            is_long=waiting.is_long,
        )
        api.answer(self._services, call)

    def _respond(self, waiting: Waiting, request: Request, values: Mapping[str, object]) -> None:
        try:
            waiting.answer(encode_response(request.api_key, request.version, request.correlation_id, values))
        except Exception as error:  # noqa: BLE001 - as above; the caller may be an unwatched thread
            waiting.answer(None)
            self._on_failure(f"{_named(request)}: the answer could not be encoded: {type(error).__name__}: {error}")


def _fill(waiting: Waiting, correlation_id: int, encoded: Envelope, records: Sequence[Chunk]) -> None:
    waiting.answer(encoded.filled(correlation_id, records))


def _named(request: Request) -> str:
    return f"{APIS[request.api_key].name} of version {request.version}"


def _refusal(key: int, correlation_id: int) -> list[Chunk] | None:
    """Answer an unsupported version of ApiVersions with the supported ones; return None, to close, for other APIs."""
    if key != API_VERSIONS:
        return None
    return encode_response(key, 0, correlation_id, versions(ErrorCode.unsupported_version))
