"""Counters of a server in Prometheus's text format."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


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
