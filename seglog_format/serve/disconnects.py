"""Detection of clients that close their connection while their answer is being made."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.serve.connection import Connection

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
