"""An HTTP endpoint where Prometheus reads the counters."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

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
