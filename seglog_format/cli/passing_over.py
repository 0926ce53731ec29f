"""Going on with other files and partitions where one of them cannot be read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seglog_format.cli.exit_status import DONE, UNREADABLE
from seglog_format.cli.failures import FAILURES, status_of, text_of
from seglog_format.cli.output import diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator


class PassingOver:
    """Reports what cannot be read, and lets the command go on. Wrong usage and failures of writing end it.

    Args:
        things: what is gone through, for the summary, such as ``partitions``.

    Attributes:
        count: things that were looked at.
        unread: those that could not be read.
    """

    def __init__(self, things: str) -> None:
        self.things = things
        self.count = 0
        self.unread = 0

    @contextmanager
    def errors_of(self, name: object) -> Iterator[None]:
        """One of the things."""
        self.count += 1
        try:
            yield
        except FAILURES as error:
            if isinstance(error, BrokenPipeError) or status_of(error) != UNREADABLE:
                raise
            self.unread += 1
            text = text_of(error)
            diagnose(text if str(name) in text else f"{name}: {text}")

    def status(self) -> int:
        """The exit status as far as reading goes, at the end; a summary is told where something was passed over."""
        if not self.unread:
            return DONE
        diagnose(f"{self.unread} of {self.count} {self.things} could not be read; the others were")
        return UNREADABLE
