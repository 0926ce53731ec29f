"""The guard that stops all writing to a log after a failure, or after it was closed (chapter 71)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError, WriteError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class FailureGuard:
    """Stores the first failed file operation; nothing is written after it (SEG-FLS-008).

    Args:
        path: of the partition directory, for error messages.

    Attributes:
        is_closed: whether the log is closed.
    """

    def __init__(self, path: Path) -> None:
        self.is_closed = False
        self._path = path
        self._failure: OSError | None = None

    @property
    def has_failed(self) -> bool:
        """Return whether an operation failed."""
        return self._failure is not None

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Refuse all further writes if a file operation in this block fails (SEG-FLS-008).

        Raises:
            WriteError: an operation failed.
        """
        try:
            yield
        except OSError as error:
            self._failure = self._failure or error
            self.check()

    def check(self) -> None:
        """Raise an error after a failure.

        Raises:
            WriteError: an earlier operation failed.
        """
        if self._failure is not None:
            msg = f"{self._path}: {self._failure.strerror or self._failure}; nothing more is written to this log"
            raise WriteError(msg) from self._failure

    def check_open(self) -> None:
        """Raise an error after a failure, or if the log is closed.

        Raises:
            UsageError: the log is closed.
            WriteError: an earlier operation failed.
        """
        self.check()
        if self.is_closed:
            msg = f"{self._path} is closed"
            raise UsageError(msg)
