"""The status line of ``seglog serve``, shown on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.cli.output import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from rich.status import Status

INTERVAL_SECONDS: Final = 1.0
MEGA: Final = 1_000_000

Figures: TypeAlias = tuple[int, int, int]


class StatusLine:
    """Shows connections, requests and traffic while a server runs, if standard error is a terminal."""

    def __init__(self, *, is_shown: bool) -> None:
        self._is_shown = is_shown and sys.stderr.isatty()
        self._status: Status | None = None

    def write_line(self, message: str) -> None:
        """Write a line above the status line."""
        if self._status is None:
            diagnose(message)
        else:
            self._status.console.print(f"seglog: {message}", markup=False, highlight=False, soft_wrap=True)

    def until(self, is_ending: Event, figures: Callable[[], Figures], seconds: float | None) -> None:
        """Show the status line until an event is set, or until the time is over.

        Args:
            is_ending: ends the display.
            figures: connections now, requests and bytes sent since the start.
            seconds: maximum time; None for no limit.
        """
        if not self._is_shown:
            is_ending.wait(seconds)
            return
        from rich.console import Console

        deadline = None if seconds is None else time.monotonic() + seconds
        _, *known = figures()
        before = (*known, time.monotonic())
        with Console(stderr=True).status("") as self._status:
            while not is_ending.wait(_wait(deadline)) and (deadline is None or time.monotonic() < deadline):
                connections, *known = figures()
                now = (*known, time.monotonic())
                self._status.update(status_text(connections, before, now))
                before = now
        self._status = None


def _wait(deadline: float | None) -> float:
    left = INTERVAL_SECONDS if deadline is None else deadline - time.monotonic()
    return max(0.0, min(INTERVAL_SECONDS, left))


def status_text(connections: int, before: tuple[float, ...], now: tuple[float, ...]) -> str:
    """Return the status line, from requests, bytes sent and time before and now."""
    seconds = max(now[2] - before[2], 1e-6)
    requests, megabytes = (now[0] - before[0]) / seconds, (now[1] - before[1]) / seconds / MEGA
    return f"{connections} connections, {requests:,.0f} requests/s, {megabytes:,.1f} MB/s"
