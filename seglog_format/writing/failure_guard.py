"""Whether a log may still be written to: not after a failure, and not when it is closed (chapter 71)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError, WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class FailureGuard:
    """Remembers the first operation on files that failed; nothing is written after it (SEG-FLS-008).

    Args:
        path: of the partition directory, for messages.

    Attributes:
        is_closed: the log was closed.
    """

    def __init__(self, path: Path) -> None:
        self.is_closed = False
        self._path = path
        self._failure: OSError | None = None

    @property
    def has_failed(self) -> bool:
        """Something went wrong."""
        return self._failure is not None

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Nothing is taken any more after an operation on files has failed in here (SEG-FLS-008).

        Raises:
            WriteError: one has.
        """
        try:
            yield
        except OSError as error:
            self._failure = self._failure or error
            self.check()

    def check(self) -> None:
        """Refuse to go on after a failure.

        Raises:
            WriteError: something went wrong.
        """
        if self._failure is not None:
            msg = f"{self._path}: {self._failure.strerror or self._failure}; nothing more is written to this log"
            raise WriteError(msg) from self._failure

    def check_open(self) -> None:
        """Refuse to go on after a failure, or when the log is closed.

        Raises:
            UsageError: the log is closed.
            WriteError: something went wrong.
        """
        self.check()
        if self.is_closed:
            msg = f"{self._path} is closed"
            raise UsageError(msg)
