"""A log in a store that is read chunk by chunk, and the chunks as a manifest describes them.

Chunks ahead of a sequential reader are fetched in advance. A field of a manifest that is missing or of another type
is an error that names the field.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from array import array
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.codec.compression import decompress
from seglog_format.errors import CorruptIndexError, FormatError, Location, RefusedError
from seglog_format.model import INT32_MAX, CompressionCodec
from seglog_format.names import printable
from seglog_format.storage.byte_source import Closing, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future


# -- fields of a JSON object from an untrusted source: if a field is missing or of another type, an error names it -----


SHOWN: Final = 60
"""Maximum number of characters of a wrong value in an error."""


class JsonFields:
    """The fields of one JSON object.

    Attributes:
        at: location of the object; its field is the dotted name of the object, empty for the outermost object.
        requirement: id of the rule that a wrong field breaks.
    """

    def __init__(self, values: dict[str, Any], at: Location, requirement: str) -> None:
        self._values = values
        self.at = at
        self.requirement = requirement

    def has(self, name: str) -> bool:
        """Return whether a field exists and is not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """Return the value of a string field."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string", value)
        return value

    def integer(self, name: str, least: int, most: int) -> int:
        """Return the value of an integer field, which must be in a range, both ends included."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(name, f"an integer from {least} to {most}", value)
        return value

    def boolean(self, name: str) -> bool:
        """Return the value of a boolean field."""
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def base64(self, name: str) -> bytes:
        """Return the bytes of a field in base64."""
        return self.decoded(name, self.text(name))

    def decoded(self, name: str, text: str) -> bytes:
        """Return the bytes of a base64 text that is part of a field."""
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(name, "base64", "other text") from None

    def inner(self, name: str) -> JsonFields:
        """Return the object in a field."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return JsonFields(value, self.at.at(self._dotted(name)), self.requirement)

    def items(self) -> list[tuple[str, Any]]:
        """Return the names and values of all fields, unchecked."""
        return list(self._values.items())

    def under(self, requirement: str) -> JsonFields:
        """Return the same fields with the id of another rule."""
        return JsonFields(self._values, self.at, requirement)

    def wrong(self, name: str, expected: str, found: object) -> CorruptIndexError:
        """Return the error for a wrong field."""
        shown = "nothing" if found is None else printable(repr(found), SHOWN)
        return CorruptIndexError(self.at.at(self._dotted(name)), self.requirement, expected=expected, found=shown)

    def _dotted(self, name: str) -> str:
        return f"{self.at.field}.{name}" if self.at.field else name


def json_object(data: bytes, at: Location, requirement: str) -> JsonFields:
    """Parse the text of one JSON object.

    Args:
        data: UTF-8.
        at: location of its start.
        requirement: id of the rule that a wrong text or field breaks.

    Raises:
        CorruptIndexError: the data is not UTF-8, not JSON, or not an object.
    """
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        position = getattr(error, "pos", getattr(error, "start", 0))
        raise CorruptIndexError(
            at.at("", position), requirement, expected="a JSON object in UTF-8", found=printable(str(error), SHOWN)
        ) from None
    if not isinstance(value, dict):
        raise CorruptIndexError(at, requirement, expected="a JSON object", found=type(value).__name__)
    return JsonFields(value, at, requirement)


# -- a log in a store that is read chunk by chunk; chunks ahead of a sequential reader are fetched in advance ----------


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


# -- the positions of a log's chunks in its object (chapter 47) --------------------------------------------------------


MAX_SIZES_SIZE: Final = 10 * 2**20
"""Maximum bytes of the decompressed list of sizes; the plug-in refuses a longer one."""
MAX_CHUNKS: Final = 2**21
"""Maximum number of chunks of a log whose sizes are listed: the largest log in chunks of 1 KiB."""
MAX_WIDTH: Final = 4
INT32_SIZE: Final = 4


class Chunk(NamedTuple):
    """A chunk of a log, and its position in the object.

    Attributes:
        number: of the chunk, from 0.
        start: position of its first byte in the log.
        size: its size in the log in bytes.
        stored_start: position of its first byte in the object.
        stored_size: its size in the object in bytes.
    """

    number: int
    start: int
    size: int
    stored_start: int
    stored_size: int


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The chunks of a log.

    Attributes:
        chunk_size: size of each chunk in the log, except for the last.
        size: size of the log in bytes.
        ends: end position of each chunk in the object, except for the last.
        stored_size: size of the object in bytes.
    """

    chunk_size: int
    size: int
    ends: Sequence[int]
    stored_size: int

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.size // self.chunk_size)

    def chunk(self, number: int) -> Chunk:
        """Return a chunk by its number, from 0."""
        start = number * self.chunk_size
        stored_start = self.ends[number - 1] if number else 0
        stored_end = self.stored_size if number == self.count - 1 else self.ends[number]
        return Chunk(number, start, min(self.chunk_size, self.size - start), stored_start, stored_end - stored_start)

    def chunks_of(self, start: int, end: int) -> range:
        """Return the numbers of the chunks that hold a range of the log's bytes; none for an empty range."""
        end = min(end, self.size)
        return range(start // self.chunk_size, -(-end // self.chunk_size)) if start < end else range(0)


def equal_chunks(chunk_size: int, size: int) -> ChunkIndex:
    """Return the chunks of a log that is stored unchanged."""
    count = -(-size // chunk_size)
    return ChunkIndex(chunk_size, size, range(chunk_size, count * chunk_size, chunk_size), size)


def read_chunk_index(fields: JsonFields) -> ChunkIndex:
    """Read the chunk index of a manifest.

    Args:
        fields: the object `chunkIndex`.

    Raises:
        CorruptIndexError: a field is missing, wrong or contradicts another (SEG-TIR-004, SEG-TIR-005).
        RefusedError: there are too many chunks.
    """
    kind = fields.text("type")
    chunk_size = fields.integer("originalChunkSize", 1, INT32_MAX)
    size = fields.integer("originalFileSize", 1, INT32_MAX)
    count = -(-size // chunk_size)
    if kind == "fixed":
        return _fixed(fields, chunk_size, size, count)
    if kind == "variable":
        return _variable(fields.under("SEG-TIR-005"), chunk_size, size, count)
    at = fields.at.at(f"{fields.at.field}.type")
    raise CorruptIndexError(at, "SEG-TIR-004", expected="fixed or variable", found=printable(repr(kind), SHOWN))


def _fixed(fields: JsonFields, chunk_size: int, size: int, count: int) -> ChunkIndex:
    stored = fields.integer("transformedChunkSize", 1, INT32_MAX)
    last = fields.integer("finalTransformedChunkSize", 1, INT32_MAX)
    ends = range(stored, count * stored, stored)
    return ChunkIndex(chunk_size, size, ends, (count - 1) * stored + last)


def _variable(fields: JsonFields, chunk_size: int, size: int, count: int) -> ChunkIndex:
    name = "transformedChunks"
    if count > MAX_CHUNKS:
        at = fields.at.at(f"{fields.at.field}.{name}")
        raise RefusedError(at, "SEG-TIR-005", expected=f"at most {MAX_CHUNKS:,} chunks", found=f"{count:,}")
    sizes = _sizes(_decompressed(fields, name), fields, name)
    if len(sizes) != count:
        raise fields.wrong(name, f"{count} chunk sizes", len(sizes))
    if min(sizes) < 1:
        raise fields.wrong(name, "chunk sizes above 0", min(sizes))
    ends = array("q", accumulate(sizes))
    return ChunkIndex(chunk_size, size, ends, ends[-1])


def _decompressed(fields: JsonFields, name: str) -> bytes:
    packed = fields.base64(name)
    at = fields.at.at(f"{fields.at.field}.{name}")
    try:
        return decompress(CompressionCodec.ZSTD, packed, magic=2, at=at, limit=MAX_SIZES_SIZE)
    except RefusedError:
        raise
    except FormatError as error:
        raise CorruptIndexError(
            at, "SEG-TIR-005", *error.requirements, expected=error.expected, found=error.found
        ) from None


def _sizes(data: bytes, fields: JsonFields, name: str) -> list[int]:
    """Decode the list of sizes: the count, all sizes but the last as differences to their minimum, then the last."""
    count = int.from_bytes(data[:INT32_SIZE], signed=True)
    if len(data) < INT32_SIZE or count < 0:
        raise fields.wrong(name, "a count of 0 or more", f"{len(data)} bytes, count {count}")
    if count <= 1:
        expected, width, base = INT32_SIZE * (1 + count), 0, 0
    else:
        width = data[2 * INT32_SIZE] if len(data) > 2 * INT32_SIZE else 0
        base = int.from_bytes(data[INT32_SIZE : 2 * INT32_SIZE], signed=True)
        expected = 3 * INT32_SIZE + 1 + (count - 1) * width
        if not 1 <= width <= MAX_WIDTH:
            raise fields.wrong(name, f"a width of 1 to {MAX_WIDTH} bytes", width)
    if len(data) != expected:
        raise fields.wrong(name, f"{expected} bytes for {count} sizes", len(data))
    if not count:
        return []
    start = 2 * INT32_SIZE + 1
    rest = range(start, start + (count - 1) * width, width or 1)
    sizes = [base + int.from_bytes(data[position : position + width]) for position in rest]
    return [*sizes, int.from_bytes(data[-INT32_SIZE:], signed=True)]


# -- a cache of the chunks of remote segments that were used last, up to a number of bytes -----------------------------


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
