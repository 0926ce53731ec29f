"""gzip and zstd by the Python interfaces of libraries: where kernels have no functions of theirs (`decoders`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zstandard

from seglog_format.columnar.compiled import kernel
from seglog_format.columnar.entries import entry_size
from seglog_format.columnar.layout import GZIP, ZSTD
from seglog_format.columnar.memory import region
from seglog_format.columnar.sections import stored_bytes
from seglog_format.columnar.streams import DECLINED, MAX_WINDOW, gzip_size, zstd_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.columnar.arrays import Bytes, Numbers

GZIP_WINDOW: Final = 31


def _inflating() -> Any:
    """The quickest library for gzip that is there: not every processor has a wheel of isal."""
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return import_module("zlib")


INFLATING: Final = _inflating()

AHEAD: Final = 16
"""Entries that are listed at a time; mostly half as many are decompressed before they are read."""
LISTED_FIELDS: Final = 5
"""Of each: position, start and end of the compressed bytes, codec, and how many bytes they decode to at most."""


class Expander:
    """Decompresses entries, with one decoder for all of a thread's."""

    def __init__(self, log: Bytes, limit: int) -> None:
        self._data = memoryview(log.data)
        self._log = log
        self._limit = limit
        self._zstd = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._listed = np.zeros(AHEAD * LISTED_FIELDS, np.int64)

    def stored(self, position: int) -> list[list[int]]:
        """The fields of some gzip and zstd entries from a position on, up to one that is odd."""
        count = list_stored(self._log, position, self._limit, self._listed)
        entries: list[list[int]] = self._listed.reshape(-1, LISTED_FIELDS)[:count].tolist()
        return entries

    def expand(self, entry: Sequence[int], target: Bytes) -> int:
        """Decompress one of these.

        Args:
            entry: its fields.
            target: takes the content; one byte larger than that can be.

        Returns:
            How many bytes it has, or `DECLINED`: it is for the reference to judge.
        """
        _, start, end, codec, bound = entry
        stored = self._data[start:end]
        if codec == ZSTD:
            return self._unpack(stored, bound, target)
        content = _gunzipped(stored, bound)
        if content is None:
            return DECLINED
        target[:bound] = np.frombuffer(content, np.uint8)
        return bound

    def _unpack(self, stored: memoryview, bound: int, target: Bytes) -> int:
        """The content of a single zstd frame, which `list_stored` has seen to be all there."""
        try:
            with self._zstd.stream_reader(stored) as reader:
                size: int = reader.readinto(target)
        except zstandard.ZstdError:
            return DECLINED
        return size if size <= bound else DECLINED


def _gunzipped(stored: memoryview, size: int) -> bytes | None:
    """The content of a single member of a stated size, its checksum verified by the library."""
    inflater = INFLATING.decompressobj(GZIP_WINDOW)
    try:
        content: bytes = inflater.decompress(stored, size + 1)
    except (INFLATING.error, ValueError):
        return None
    is_whole = inflater.eof and not inflater.unused_data and not inflater.unconsumed_tail
    return content if is_whole and size == len(content) else None


@kernel
def list_stored(log: Bytes, position: int, limit: int, listed: Numbers) -> int:
    """List the entries from a position on that the libraries are to decompress.

    Args:
        log: bytes of the log.
        position: of the first.
        limit: bytes that one may decode to.
        listed: takes the fields of each.

    Returns:
        How many there are before one that is odd or of another codec, or before there is no more room.
    """
    data, count = region(log), 0
    while LISTED_FIELDS * (count + 1) <= len(listed) and position >= 0:
        size = entry_size(data, position, len(log))
        if size < 0:
            break
        start, end, codec, _ = stored_bytes(data, position, size)
        bound = DECLINED
        if start >= 0 and codec == GZIP:
            bound = gzip_size(data, start, end)
        elif start >= 0 and codec == ZSTD:
            bound = zstd_bound(data, start, end)
        if not 0 <= bound <= limit:
            break
        at = LISTED_FIELDS * count
        listed[at], listed[at + 1], listed[at + 2], listed[at + 3], listed[at + 4] = position, start, end, codec, bound
        position, count = position + size, count + 1
    return count
