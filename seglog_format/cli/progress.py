"""How far a command is: one line on standard error, if that is a terminal; it is erased before other output."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ERASE: Final = "\r\x1b[K"
FIRST_SECONDS: Final = 0.5
"""Work that ends sooner shows nothing."""
REDRAW_SECONDS: Final = 0.1
ESTIMATE_SECONDS: Final = 2.0
ESTIMATE_SHARE: Final = 0.02
"""Time and share of the work from which on the time left is estimated."""
MINUTE: Final = 60
HOUR: Final = 3600
LONGEST_ESTIMATE: Final = 100 * HOUR
BAR: Final = 20


class Progress:
    """The line of one piece of work.

    Args:
        label: name of the work.
        total: the value at the end, in any unit.
        is_drawn: whether there is a terminal to draw it on.
        clock: seconds, from any start.
    """

    def __init__(
        self, label: str, total: int, *, is_drawn: bool = True, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label, self._total, self._is_drawn, self._clock = label, max(total, 1), is_drawn, clock
        self._begun = self._drawn = clock()
        self._share = 0.0
        self._is_shown = False

    def update(self, done: int) -> None:
        """Note the value that is reached; draw the line if it is time."""
        self._share = min(max(done / self._total, 0.0), 1.0)
        if not self._is_drawn:
            return
        now = self._clock()
        if now - self._begun >= FIRST_SECONDS and now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._is_shown = True
            columns = shutil.get_terminal_size().columns
            sys.stderr.write(ERASE + self.text(now)[: columns - 1])
            sys.stderr.flush()

    def text(self, now: float) -> str:
        """Return the line at a time of the clock."""
        bar = "#" * round(self._share * BAR)
        return f"{self._label} [{bar:<{BAR}}] {self._share:4.0%}{self._time_left(now - self._begun)}"

    def _time_left(self, seconds: float) -> str:
        if seconds < ESTIMATE_SECONDS or self._share < ESTIMATE_SHARE:
            return ""
        left = seconds * (1 - self._share) / self._share
        return f"  {duration_text(left)} left" if left <= LONGEST_ESTIMATE else ""

    def hide(self) -> None:
        """Erase the line; the next update draws it again."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write(ERASE)
            sys.stderr.flush()

    def summary(self) -> str:
        """Return how far the work came, for the message after an interruption."""
        return f"{self._label.lower()} was {self._share:.0%} done after {duration_text(self._clock() - self._begun)}"


_running: list[Progress] = []
"""The work in progress, and the work that was in progress when an exception ended it."""


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far the work is, if standard error is a terminal.

    Args:
        label: name of the work.
        total: the value at the end, in any unit.

    Yields:
        A function to call with the value reached.
    """
    shown = Progress(label, total, is_drawn=sys.stderr.isatty())
    _running[:] = [shown]
    try:
        yield shown.update
    finally:
        shown.hide()
    _running.clear()


def hide() -> None:
    """Erase the line, before something else is printed."""
    for shown in _running:
        shown.hide()


def interrupted_text() -> str:
    """Return the message after Ctrl-C: how far the work came."""
    return "; ".join(["interrupted", *(shown.summary() for shown in _running)])


def duration_text(seconds: float) -> str:
    """Return a time in its largest units: ``8 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = max(round(seconds), 0)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
