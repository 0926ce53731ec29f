"""A server on this machine that answers like S3, and fails requests that a test chooses."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DENIED = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class FailingStore:
    """Answers like S3.

    Attributes:
        every: each request of such a number fails with 503; 0 for none.
        refuses: tells from method and path of a request whether it is denied.
        requests: so far.
        failures: of them.
    """

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self.reset()

    def reset(self) -> None:
        """Fail at nothing from now on."""
        self.every = self.requests = self.failures = 0
        self.refuses: Callable[[str, str], bool] = lambda _method, _path: False

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.requests += 1
        if self.every and self.requests % self.every == 0:
            return self._fail(start_response, "503 Slow Down", b"")
        if self.refuses(environ["REQUEST_METHOD"], environ["PATH_INFO"]):
            return self._fail(start_response, "403 Forbidden", DENIED)
        found: Iterable[bytes] = self._app(environ, start_response)
        return found

    def _fail(self, start_response: Callable[..., Any], status: str, body: bytes) -> Iterable[bytes]:
        self.failures += 1
        start_response(status, [("Content-Length", str(len(body)))])
        return [body]


@contextmanager
def serving() -> Iterator[tuple[FailingStore, int]]:
    """Provide a server and its port."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = FailingStore()
    server = make_server("127.0.0.1", 0, store, threaded=True)
    Thread(target=server.serve_forever, daemon=True).start()
    yield store, server.port
    server.shutdown()
