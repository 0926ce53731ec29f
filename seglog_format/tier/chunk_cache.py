"""A cache of the chunks of remote segments that were used last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

DEFAULT_CACHE_SIZE: Final = 8 * 2**20
"""Default maximum of bytes: two chunks of the plug-in's default size, because an entry may be in two chunks."""


class ChunkCache:
    """Chunks by object and number. The chunk added last is always kept. The cache is thread-safe."""

    def __init__(self, max_size: int = DEFAULT_CACHE_SIZE) -> None:
        """Create an empty cache.

        Args:
            max_size: maximum bytes to keep.
        """
        self.max_size = max_size
        self._size = 0
        self._chunks: OrderedDict[tuple[str, int], memoryview] = OrderedDict()
        self._lock = Lock()

    def find(self, path: str, number: int) -> memoryview | None:
        """Return a chunk; None if it is not in the cache."""
        with self._lock:
            found = self._chunks.get((path, number))
            if found is not None:
                self._chunks.move_to_end((path, number))
            return found

    def add(self, path: str, number: int, data: memoryview) -> None:
        """Add a chunk, and drop the least recently used ones."""
        with self._lock:
            known = self._chunks.pop((path, number), None)
            self._size += len(data) - (0 if known is None else len(known))
            self._chunks[path, number] = data
            while self._size > self.max_size and len(self._chunks) > 1:
                _, dropped = self._chunks.popitem(last=False)
                self._size -= len(dropped)
