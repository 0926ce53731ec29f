"""A request on its way through the APIs, and what all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from seglog_format.serve.arrivals import Arrivals
    from seglog_format.serve.catalog import Catalog
    from seglog_format.serve.delays import Delays
    from seglog_format.serve.groups import Coordinator
    from seglog_format.serve.limits import Limits
    from seglog_format.serve.slices import Chunk
    from seglog_format.serve.wire import Envelope
    from seglog_format.serve.writing import Writers

NODE_ID: Final = 1
"""Of the only broker that there seems to be."""

UNKNOWN_EPOCH: Final = -1
UNKNOWN_OFFSET: Final = -1
NOT_ASKED: Final = -(2**31)
"""Stands for operations that somebody is authorized to, where nobody has asked for them."""


class Address(NamedTuple):
    """Host and port by which a client has reached us; what Metadata names, so that it comes back."""

    host: str
    port: int


class Call(NamedTuple):
    """A request, and the way back.

    Attributes:
        version: of the request's API.
        client_id: what the client calls itself.
        body: the request; its fields are those of the version.
        address: where the client has reached us.
        respond: takes the fields of the answer, once, from any thread.
        fill: the same with an answer that is encoded, and the log bytes for its gaps.
        finish: takes the next request without an answer to this one.
        hang_up: closes the connection instead: for a request that may not be answered.
        is_gone: tells whether the client has gone, so that nobody waits for the answer.
        is_long: it is answered among requests that may take long; else it has to be left to those if it would.
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
        """A field of the request, or a default where its version has none."""
        return getattr(self.body, name, default)


class Services(NamedTuple):
    """What requests are answered from.

    Attributes:
        catalog: what is served.
        coordinator: of consumer groups, made when somebody asks for it.
        delays: calls functions later.
        arrivals: tells who waits when something was written.
        submit: has an I/O thread call a function, among those of requests that may take long if that is said.
        limits: what clients may take.
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
    """A duration of a request."""
    return round(duration.total_seconds() * 1000)
