"""Continuation with other files and partitions after one cannot be read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seglog_format.cli.exit_status import DONE, UNREADABLE
from seglog_format.cli.main import FAILURES, status_of, text_of
from seglog_format.cli.output import diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator


class PassingOver:
    """Reports what cannot be read, and lets the command continue. Wrong usage and failed writes end it.

    Args:
        things: plural noun for the summary, such as ``partitions``.

    Attributes:
        count: number of things visited.
        unread: number of those that could not be read.
    """

    def __init__(self, things: str) -> None:
        self.things = things
        self.count = 0
        self.unread = 0

    @contextmanager
    def errors_of(self, name: object) -> Iterator[None]:
        """Handle the errors of one thing."""
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
        """Return the exit status for reading, at the end; print a summary if one of several things was skipped."""
        if not self.unread:
            return DONE
        if self.count > 1:
            diagnose(f"{self.unread} of {self.count} {self.things} could not be read; the others were")
        return UNREADABLE
