"""Clients that have gone while their answer is being made."""

from __future__ import annotations

import select
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.serve.connection import Connection

HAS_POLL: Final = hasattr(select, "poll")
HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""The other side sends no more, whatever of it still waits to be read; elsewhere than on Linux a full end has to do."""


def hung_up(connections: Iterable[Connection]) -> list[Connection]:
    """Those of the connections whose clients have ended them. It does not matter whether anything is read from them."""
    if not HAS_POLL:
        return []
    poller, asked = select.poll(), {}
    for each in connections:
        asked[each.socket.fileno()] = each
        poller.register(each.socket, HANG_UP)
    return [asked[descriptor] for descriptor, _ in poller.poll(0)] if asked else []
