"""The chunks of remote segments that were used last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

DEFAULT_CACHE_SIZE: Final = 8 * 2**20
"""Default maximum of bytes: two chunks of the size that the plug-in makes by default; an entry may lie in two."""


class ChunkCache:
    """Chunks by object and number. The one just added always stays. Safe to share between threads."""

    def __init__(self, max_size: int = DEFAULT_CACHE_SIZE) -> None:
        """Start empty.

        Args:
            max_size: maximum bytes to keep.
        """
        self.max_size = max_size
        self._size = 0
        self._chunks: OrderedDict[tuple[str, int], memoryview] = OrderedDict()
        self._lock = Lock()

    def find(self, path: str, number: int) -> memoryview | None:
        """Return a chunk; None if it is not kept."""
        with self._lock:
            found = self._chunks.get((path, number))
            if found is not None:
                self._chunks.move_to_end((path, number))
            return found

    def add(self, path: str, number: int, data: memoryview) -> None:
        """Keep a chunk, and drop those not used for longest."""
        with self._lock:
            known = self._chunks.pop((path, number), None)
            self._size += len(data) - (0 if known is None else len(known))
            self._chunks[path, number] = data
            while self._size > self.max_size and len(self._chunks) > 1:
                _, dropped = self._chunks.popitem(last=False)
                self._size -= len(dropped)
