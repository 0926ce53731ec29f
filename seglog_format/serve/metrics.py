"""Counters of a server in Prometheus's text format, and the HTTP endpoint where Prometheus reads them."""

from __future__ import annotations

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType


class Load(NamedTuple):
    """Current load.

    Attributes:
        connections: open connections.
        accepted: connections accepted since the start.
        refused: connections refused because there were too many.
        waiting: requests in the queue.
        received: bytes from clients since the start.
        sent: bytes to clients since the start.
    """

    connections: int
    accepted: int
    refused: int
    waiting: int
    received: int
    sent: int


class Metrics:
    """Counts requests, findings and failures. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[str] = Counter()
        self._findings = 0
        self._failures = 0

    def count_request(self, name: str) -> None:
        """Count a request of an API."""
        with self._lock:
            self._requests[name] += 1

    def count_finding(self) -> None:
        """Count a finding that prevents bytes from being served."""
        with self._lock:
            self._findings += 1

    def count_failure(self) -> None:
        """Count a request or a delayed call that failed because of a defect of the server."""
        with self._lock:
            self._failures += 1

    @property
    def request_count(self) -> int:
        """Number of requests since the start."""
        with self._lock:
            return self._requests.total()

    def text(self, load: Load) -> str:
        """Return all counters in Prometheus's text format."""
        return "".join(f"{line}\n" for line in self._lines(load))

    def _lines(self, load: Load) -> Iterator[str]:
        with self._lock:
            requests, findings, failures = dict(self._requests), self._findings, self._failures
        yield from _described("connections", "gauge", "Connections that are open.", load.connections)
        yield from _described("connections_accepted_total", "counter", "Connections taken.", load.accepted)
        yield from _described(
            "connections_refused_total", "counter", "Connections refused because there were too many.", load.refused
        )
        yield from _described("queued_requests", "gauge", "Requests that wait for an I/O thread.", load.waiting)
        yield from _described("received_bytes_total", "counter", "Bytes from clients.", load.received)
        yield from _described("sent_bytes_total", "counter", "Bytes to clients.", load.sent)
        yield from _described("findings_total", "counter", "Things that keep bytes from being served.", findings)
        yield from _described(
            "failures_total", "counter", "Requests and delayed calls that failed through a fault.", failures
        )
        yield "# HELP seglog_requests_total Requests, by API."
        yield "# TYPE seglog_requests_total counter"
        yield from (f'seglog_requests_total{{api="{name}"}} {count}' for name, count in sorted(requests.items()))


def _described(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield f"# HELP seglog_{name} {text}"
    yield f"# TYPE seglog_{name} {kind}"
    yield f"seglog_{name} {value}"


CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class MetricsEndpoint:
    """Answers ``GET /metrics`` on 127.0.0.1 in a thread of its own. A context manager.

    Attributes:
        port: the port that it listens on.

    Raises:
        OSError: the port cannot be bound.
    """

    def __init__(self, port: int, text: Callable[[], str]) -> None:
        """Bind the port.

        Args:
            port: 0 for any.
            text: returns the answer.
        """

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_GET(self) -> None:
                is_known = self.path.split("?")[0] == "/metrics"
                body = (text() if is_known else "look at /metrics\n").encode()
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, name="seglog-metrics", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
