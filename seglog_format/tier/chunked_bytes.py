"""A log in a store that is read chunk by chunk; chunks ahead of a sequential reader are fetched in advance."""

from __future__ import annotations

import os
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Final

from seglog_format.closing import Closing
from seglog_format.storage.byte_source import Window

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from seglog_format.tier.chunk_cache import ChunkCache
    from seglog_format.tier.chunk_index import Chunk, ChunkIndex

MAX_THREADS: Final = 4
"""Maximum number of concurrent requests that fetch chunks in advance: the number of processors, at least 2."""
MAX_AHEAD_SIZE: Final = 8 * 2**20
"""Maximum bytes of a log that are fetched in advance, unless a single chunk is larger: touching more memory costs more
time than waiting for fetches.
"""
MAX_LOOKED_AT: Final = 2
"""Number of consecutive chunks that a lookup may touch: an entry can begin in one chunk and end in the next."""
MAX_DOUBLED: Final = 10
KEPT_SIZE: Final = 8 * 2**20
"""Bytes that are allocated and freed once, to make the C library keep up to twice as much memory that a thread frees.
Otherwise it returns the memory of chunks to the system, which clears each page again for the next chunks: a fifth of
the total time.
"""
NOTHING: Final = memoryview(b"")


@cache
def _workers() -> ThreadPoolExecutor:
    """Return the pool of threads that fetch in advance; all logs share it, because new threads begin without memory."""
    bytes(KEPT_SIZE)
    return ThreadPoolExecutor(min(MAX_THREADS, max(2, os.cpu_count() or 1)), "seglog-tier")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)  # a forked process has no threads


class ChunkedBytes(Closing):
    """A log in a store that is open for reading; a `SourceFile`. Not thread-safe.

    A lookup fetches only the chunks that it touches. For a sequential reader, a few threads fetch and decode the next
    chunks in advance.

    Attributes:
        path: name of the object.
        size: size of the log in bytes.
    """

    def __init__(self, path: str, chunks: ChunkIndex, fetch: Callable[[Chunk], bytes], cache: ChunkCache) -> None:
        """Open a log; nothing is fetched yet.

        Args:
            path: name of the object, unique among those that share the cache.
            chunks: positions of its chunks.
            fetch: returns the bytes of the log in a chunk; it is also called from other threads.
            cache: of chunks.
        """
        self.path = path
        self.size = chunks.size
        self._chunks = chunks
        self._fetch = fetch
        self._cache = cache
        self._window = Window(0, NOTHING)
        self._last = -1
        self._in_a_row = 0
        self._coming: OrderedDict[int, Future[bytes]] = OrderedDict()

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read of a range; chunks after its end may be fetched also."""
        del end
        self._last = start // self._chunks.chunk_size - 1
        self._in_a_row = MAX_LOOKED_AT

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another in one piece, fewer at the end of the log.

        Raises:
            FormatError: the object does not follow its layout.
            UsageError: the store does not answer.
        """
        end = min(end, self.size)
        first, data = self._window
        if first <= start and end <= first + len(data):
            return data[start - first : end - first]
        if start >= end:
            return NOTHING
        self.forget()
        pieces = []
        for number in self._chunks.chunks_of(start, end):
            at, piece = number * self._chunks.chunk_size, self._chunk(number)
            pieces.append(piece[max(start - at, 0) : end - at])
        return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part of the log that holds the byte at a position: its chunk, or the needed bytes of several chunks.

        Raises:
            FormatError: the object does not follow its layout.
            UsageError: the store does not answer.
        """
        end = min(position + max(at_least, 1), self.size)
        first, data = self._window
        if first <= position and end <= first + len(data):
            return self._window
        if position >= end:
            return Window(position, NOTHING)
        numbers = self._chunks.chunks_of(position, end)
        if len(numbers) == 1:
            self._window = Window(numbers[0] * self._chunks.chunk_size, self._chunk(numbers[0]))
            return self._window
        return Window(position, self.view(position, end))

    def _chunk(self, number: int) -> memoryview:
        """Return a chunk; if chunks are read in sequence, start fetching the next ones."""
        found = self._cache.find(self.path, number)
        if found is None:
            coming = self._coming.pop(number, None)
            if coming is None:
                self._cancel_fetches()
            data = self._fetch(self._chunks.chunk(number)) if coming is None else coming.result()
            found = memoryview(data)
            self._cache.add(self.path, number, found)
        self._fetch_next(number)
        return found

    def _fetch_next(self, number: int) -> None:
        """Start fetching the chunks after one, if more consecutive chunks were read than a lookup touches."""
        if number == self._last:
            return
        self._in_a_row = self._in_a_row + 1 if number == self._last + 1 else 1
        self._last = number
        if self._in_a_row <= MAX_LOOKED_AT:
            return
        most = max(1, MAX_AHEAD_SIZE // self._chunks.chunk_size)
        ahead = min(2 ** min(self._in_a_row - MAX_LOOKED_AT, MAX_DOUBLED), most)
        for following in range(number + 1, min(number + 1 + ahead, self._chunks.count)):
            self._fetch_ahead(following)

    def _fetch_ahead(self, number: int) -> None:
        if number in self._coming or self._cache.find(self.path, number) is not None:
            return
        self._coming[number] = _workers().submit(self._fetch, self._chunks.chunk(number))

    def _cancel_fetches(self) -> None:
        while self._coming:
            self._coming.popitem()[1].cancel()

    def forget(self) -> None:
        """Keep only the chunks in the shared cache, whose size is bounded: many logs may be open."""
        self._window = Window(0, NOTHING)

    def release_before(self, position: int) -> None:
        """Do nothing: at most one chunk is kept."""

    def close(self) -> None:
        """Stop fetching in advance; views of the log stay valid."""
        self._cancel_fetches()
        self.forget()
