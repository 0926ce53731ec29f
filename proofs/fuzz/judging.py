"""Comparison of engine and reference in fuzzing and bounds checks, and the guarded memory for the engine."""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seglog_format.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

LIMIT: Final = 2**18
"""Bytes that one entry may decompress to; a few inputs ask for less."""
SMALL_LIMIT: Final = 150
OUTCOME = tuple[list[Any], str]


class DifferenceError(Exception):
    """The engine differs from the reference, or from a library."""


# Memory that ends at an inaccessible page


class Guarded:
    """Bytes that end at an inaccessible page: a read or write after them ends the process.

    If the system cannot protect a page, they are ordinary bytes.
    """

    def __init__(self, size: int) -> None:
        whole = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._pages = mmap.mmap(-1, whole + mmap.PAGESIZE)
        self._bytes = np.frombuffer(self._pages, np.uint8)[:whole]
        if sys.platform == "linux":
            ctypes.CDLL(None).mprotect(ctypes.c_void_p(self._bytes.ctypes.data + whole), mmap.PAGESIZE, 0)

    def last(self, size: int) -> Bytes:
        """Return the last `size` bytes."""
        return self._bytes[len(self._bytes) - size :]

    def holding(self, data: bytes) -> memoryview:
        """Return the given bytes at the end of the memory; valid until the next call."""
        if len(data) > len(self._bytes):
            return memoryview(data)
        start = self.last(len(data))
        start[:] = np.frombuffer(data, np.uint8)
        return start.data.toreadonly()


LOG: Final = Guarded(2**17)
ARENA: Final = Guarded(2**20)


# Comparing


def outcome(parts: Callable[[], Iterable[Any]]) -> OUTCOME:
    """Return the delivered parts, and the error that ended the read."""
    found: list[Any] = []
    try:
        for each in parts():
            found.append(each)  # noqa: PERF402 - what came before the error counts
    except FormatError as error:
        return found, str(error)
    return found, ""


def compare_results(what: str, engine: object, reference: object) -> str:
    """Compare both results, and return a short form of them; a difference is a finding."""
    if engine != reference:
        msg = f"{what}: engine {clipped(engine)}, reference {clipped(reference)}"
        raise DifferenceError(msg)
    return hashlib.sha256(repr(engine).encode()).hexdigest()[:16]


def clipped(value: object) -> str:
    """Return the start of a value's text."""
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:200]} ... {text[-200:]}"  # noqa: PLR2004
