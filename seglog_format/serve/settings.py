"""Settings of a server."""

from __future__ import annotations

from typing import Final, NamedTuple

from seglog_format.serve.limits import DEFAULT_LIMITS, MAX_REQUEST_SIZE, Limits

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 9092


class Settings(NamedTuple):
    """Address, number of threads, and limits for clients.

    Attributes:
        host: address to listen on.
        port: port to listen on; 0 for any that is free.
        processors: threads that read requests and send answers.
        io_threads: threads that read logs.
        max_connections: maximum number; further connections are closed at once.
        max_request_size: bytes; a larger request closes its connection.
        queue_length: requests that may wait for an I/O thread; while it is full, nothing more is read.
        idle_seconds: time without traffic after which a connection is closed.
        limits: limits on what clients may use.
    """

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    processors: int = 2
    io_threads: int = 4
    max_connections: int = 1000
    max_request_size: int = MAX_REQUEST_SIZE
    queue_length: int = 500
    idle_seconds: float = 600.0
    limits: Limits = DEFAULT_LIMITS
