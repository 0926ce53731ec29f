"""A request as the APIs see it, and the services that all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from seglog_format.serve.catalog import Catalog
    from seglog_format.serve.delays import Arrivals, Delays
    from seglog_format.serve.groups import Coordinator
    from seglog_format.serve.limits import Limits
    from seglog_format.serve.slices import Chunk
    from seglog_format.serve.wire import Envelope
    from seglog_format.serve.writing import Writers

NODE_ID: Final = 1
"""Id of the only broker in the cluster, this server."""

UNKNOWN_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1
NOT_ASKED: Final = -(2**31)
"""Value of the authorized operations of a client that did not ask for them."""


class Address(NamedTuple):
    """Host and port that a client connected to; Metadata returns them, so the client comes back."""

    host: str
    port: int


class Call(NamedTuple):
    """A request, and the callbacks that answer it.

    Attributes:
        version: version of the request's API.
        client_id: name that the client gives itself.
        body: the request; its fields are those of the version.
        address: host and port that the client connected to.
        respond: takes the fields of the answer, once, from any thread.
        fill: takes an encoded answer instead, and the log bytes for its gaps.
        finish: continues with the next request without an answer to this one.
        hang_up: closes the connection without an answer.
        is_gone: returns whether the client has closed the connection, so no answer is needed.
        is_long: it is in the queue of long requests; if False, a slow request must be moved there.
    """

    version: int
    client_id: str
    body: Any
    address: Address
    respond: Callable[[Mapping[str, object]], None]
    fill: Callable[[Envelope, Sequence[Chunk]], None]
    finish: Callable[[], None]
    hang_up: Callable[[], None]
    is_gone: Callable[[], bool]
    is_long: bool

    def field(self, name: str, default: Any = None) -> Any:
        """Return a field of the request, or the default if its version has no such field."""
        return getattr(self.body, name, default)


class Services(NamedTuple):
    """State from which the APIs answer requests.

    Attributes:
        catalog: the served topics.
        coordinator: of consumer groups, created at its first use.
        delays: calls functions later.
        arrivals: calls back waiting fetches when records are appended.
        submit: makes an I/O thread call a function, from the queue of long requests if `is_long`.
        limits: limits on what clients may use.
        writers: of the partitions; None where nothing may be written.
    """

    catalog: Catalog
    coordinator: Callable[[], Coordinator]
    delays: Delays
    arrivals: Arrivals
    submit: Callable[[Callable[[], None], bool], None]
    limits: Limits
    writers: Writers | None = None


def milliseconds(duration: timedelta) -> int:
    """Convert a duration of a request to milliseconds."""
    return round(duration.total_seconds() * 1000)
