"""A file of the simulated disk, open for reading."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from seglog_format.types import Window

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_WINDOW: Final = 1 << 16
"""Number of bytes that are read at a time."""


class SimulatedSource(AbstractContextManager["SimulatedSource"]):
    """A file that is read through windows, as real files are.

    Args:
        path: the file.
        size: size of the file in bytes when it was opened.
        read: returns the bytes from one position to another, as written so far.
    """

    def __init__(self, path: str, size: int, read: Callable[[int, int], memoryview]) -> None:
        self.path = path
        self.size = size
        self._read = read

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another."""
        return self._read(start, min(end, self.size))

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part of the file that holds the byte at a position, and some after it."""
        return Window(position, self.view(position, position + max(at_least, FIRST_WINDOW)))

    def __exit__(self, *_: object) -> None:
        self.close()

    def expect(self, start: int, end: int | None) -> None:
        """Do nothing: a file in memory needs no hints."""

    def forget(self) -> None:
        """Do nothing: no pages are cached."""

    def release_before(self, position: int) -> None:
        """Do nothing: no pages are cached."""

    def close(self) -> None:
        """Do nothing: there are no resources to release."""
