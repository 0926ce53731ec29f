"""Decompression of a few entries ahead of reading, so their content is still in the cache when it is read."""

from __future__ import annotations

import ctypes
import weakref
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from seglog_format.columnar.checksum import crc32
from seglog_format.columnar.compiled import helper, inlined, int64, intrinsic, ir, kernel, types
from seglog_format.columnar.entries import entry_codec, entry_size
from seglog_format.columnar.layout import (
    BATCH_HEADER_SIZE,
    BATCH_MAGIC,
    GZIP,
    LENGTH_SIZE,
    LZ4,
    MAGIC,
    RECORDS_COUNT,
    SNAPPY,
    ZSTD,
)
from seglog_format.columnar.lz4 import decompress_lz4
from seglog_format.columnar.memory import (
    I64,
    SLACK,
    address,
    load_64,
    load_be32,
    load_le16,
    load_le32,
    load_u8,
    region,
    store_32,
    store_64,
)
from seglog_format.columnar.messages import message_parts
from seglog_format.columnar.plan import (
    ARENA_USED,
    CHECKSUM_PATH,
    CHUNK_FIELDS,
    CHUNKS,
    DECODERS,
    DECOMPRESS,
    FULL,
    LIMIT,
    MAX_CHUNKS,
    MAX_ROWS,
    MORE_ARENA,
    NEXT_CHUNK,
    POSITION,
    ROWS,
)
from seglog_format.columnar.records import DAMAGED, MASK_32, NO_ROOM
from seglog_format.columnar.snappy import decompress_snappy

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region


# -- functions of C libraries that kernels call for gzip and zstd ------------------------------------------------------
# The wheels of isal and zstandard contain the libraries. If the version of a wheel is unknown, or it does not export
# the functions, or a test call fails, kernels do not call the library; Python calls it for each entry instead. The
# cost is in `docs/explanation`, two engines.


ZSTD_MODULE: Final = "zstandard._cffi"
GZIP_MODULE: Final = "isal.igzip_lib"
KNOWN_VERSIONS: Final = {"zstandard": "0.25", "isal": "1.9"}
"""Versions of the wheels with the functions and structures used here; kernels do not call any other version."""
ADDRESS: Final = ctypes.c_void_p
SIZE: Final = ctypes.c_size_t

SLOTS: Final = 5
"""Number of slots for kernels: a function and a context for zstd, two functions and a stream for gzip."""
NONE: Final = 0


class Stream(ctypes.Structure):
    """State of a stream in isal (``struct inflate_state``): the first fields, and enough space for the rest."""

    _fields_ = (
        ("next_out", ADDRESS),
        ("avail_out", ctypes.c_uint32),
        ("total_out", ctypes.c_uint32),
        ("next_in", ADDRESS),
        ("read_in", ctypes.c_uint64),
        ("avail_in", ctypes.c_uint32),
        ("rest", ctypes.c_char * 2**18),
    )


class Decoders:
    """Decompressor of one thread: a context and a stream of its own, which are freed with it.

    Attributes:
        slots: addresses for kernels (`plan.DECODERS`); `NONE` for a missing library.
    """

    def __init__(self) -> None:
        self.slots = [NONE] * SLOTS
        if zstd := zstd_library():
            context = zstd.ZSTD_createDCtx()
            weakref.finalize(self, zstd.ZSTD_freeDCtx, context).atexit = False
            self.slots[:2] = _address(zstd.ZSTD_decompressDCtx), context or NONE
        if gzip := gzip_library():
            self._stream = Stream()
            functions = (gzip.isal_inflate_init, gzip.isal_inflate_stateless)
            self.slots[2:] = *map(_address, functions), ctypes.addressof(self._stream)


def _address(function: Any) -> int:
    return ctypes.cast(function, ADDRESS).value or NONE


@cache
def zstd_library() -> ctypes.CDLL | None:
    """Return the library of zstd; None if kernels cannot call it."""
    return _library(
        ZSTD_MODULE,
        ("ZSTD_createDCtx", ADDRESS, ()),
        ("ZSTD_freeDCtx", SIZE, (ADDRESS,)),
        ("ZSTD_decompressDCtx", SIZE, (ADDRESS, ADDRESS, SIZE, ADDRESS, SIZE)),
    )


@cache
def gzip_library() -> ctypes.CDLL | None:
    """Return the library isal; None if kernels cannot call it, or the layout of its streams differs from `Stream`."""
    library = _library(
        GZIP_MODULE, ("isal_inflate_init", None, (ADDRESS,)), ("isal_inflate_stateless", ctypes.c_int, (ADDRESS,))
    )
    return library if library and _inflates(library) else None


def _library(module: str, *functions: tuple[str, Any, tuple[Any, ...]]) -> ctypes.CDLL | None:
    """Return the library inside a module of a known version, if it exports these functions.

    Args:
        module: contains the library.
        functions: name, type of the result and types of the arguments of each.
    """
    if not _is_known(module.partition(".")[0]):
        return None
    try:
        found = find_spec(module)
        if found is None or found.origin is None:
            return None
        library = ctypes.CDLL(found.origin)
        for name, result, arguments in functions:
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (AttributeError, ImportError, OSError):
        return None
    return library


def _is_known(package: str) -> bool:
    """Return whether the installed version of a package is one of `KNOWN_VERSIONS`."""
    try:
        return version(package).rpartition(".")[0] == KNOWN_VERSIONS.get(package)
    except PackageNotFoundError:
        return False


def _inflates(library: ctypes.CDLL) -> bool:
    """Return whether a stream decompresses a sample, and its counters are in the declared fields."""
    sample = bytes(range(64)) * 4
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    deflated = compressor.compress(sample) + compressor.flush()
    source, target = ctypes.create_string_buffer(deflated), ctypes.create_string_buffer(2 * len(sample))
    stream = Stream()
    library.isal_inflate_init(ctypes.byref(stream))
    stream.next_out, stream.avail_out = ctypes.addressof(target), len(target)
    stream.next_in, stream.avail_in = ctypes.addressof(source), len(deflated) + 1
    answer = library.isal_inflate_stateless(ctypes.byref(stream))
    numbers = (answer, stream.total_out, stream.avail_out, stream.avail_in)
    return target.raw.startswith(sample) and numbers == (0, len(sample), len(target) - len(sample), 1)


@intrinsic
def foreign(typing: Any, function: Any, arguments: Any) -> Any:
    """Call a C function that takes numbers or addresses of 64 bits, and returns one number of at most 64 bits."""
    del typing

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        del context
        address, passed = values
        count = len(signature.args[1])
        kind = ir.FunctionType(I64, [I64] * count)
        parts = [builder.extract_value(passed, number) for number in range(count)]
        return builder.call(builder.inttoptr(address, kind.as_pointer()), parts)

    return types.int64(function, arguments), generate


# -- decompression of common gzip members and zstd frames, by functions of libraries (chapter 34) ----------------------
# The fallback decoder reads all other data.


DECLINED: Final = -1

GZIP_START: Final = 0x00088B1F
"""Magic, deflate, and no flags."""
GZIP_HEADER_SIZE: Final = 10
GZIP_TRAILER_SIZE: Final = 8
MAX_DEFLATION: Final = 1032
"""Maximum ratio of decompressed to compressed bytes of deflate."""

ZSTD_MAGIC: Final = 0xFD2FB528
ZSTD_SMALLEST: Final = 6
ZSTD_DESCRIPTOR: Final = 4
SINGLE_SEGMENT: Final = 0x20
RESERVED_OR_DICTIONARY: Final = 0x0B
CHECKSUM: Final = 0x04
CHECKSUM_SIZE: Final = 4
BLOCK_HEADER_SIZE: Final = 3
MAX_BLOCK_SIZE: Final = 2**17
MAX_WINDOW: Final = 2**23
"""Maximum window of clients; the library allocates it."""
REPEATED_BYTE: Final = 1
COMPRESSED: Final = 2
RESERVED: Final = 3

STREAM_SIZE: Final = ctypes.sizeof(Stream)
NEXT_OUT: Final = Stream.next_out.offset
AVAIL_OUT: Final = Stream.avail_out.offset
TOTAL_OUT: Final = Stream.total_out.offset
NEXT_IN: Final = Stream.next_in.offset
AVAIL_IN: Final = Stream.avail_in.offset


@inlined
def gzip_size(data: Region, start: int, end: int) -> int:
    """Return the size that a gzip member without optional fields states; `DECLINED` for any other member."""
    stored = end - start - GZIP_HEADER_SIZE - GZIP_TRAILER_SIZE
    if stored < 0 or load_le32(data, start) != GZIP_START:
        return DECLINED
    size = load_le32(data, end - LENGTH_SIZE)
    return size if size <= MAX_DEFLATION * stored else DECLINED


@inlined
def zstd_bound(data: Region, start: int, end: int) -> int:
    """Return an upper bound for the content of a zstd frame; `DECLINED` if it is not covered, or bytes follow it."""
    if end - start < ZSTD_SMALLEST or load_le32(data, start) != ZSTD_MAGIC:
        return DECLINED
    descriptor = load_u8(data, start + ZSTD_DESCRIPTOR)
    position, window_size, content_size = _zstd_header(data, start, end, descriptor)
    if descriptor & RESERVED_OR_DICTIONARY or window_size < 0 or window_size > MAX_WINDOW:
        return DECLINED
    largest, total, is_last = min(window_size, MAX_BLOCK_SIZE), 0, False
    while not is_last:
        if end - position < BLOCK_HEADER_SIZE:
            return DECLINED
        fields = load_le16(data, position) | load_u8(data, position + 2) << 16
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        if kind == RESERVED or size > largest:
            return DECLINED
        position += BLOCK_HEADER_SIZE + (1 if kind == REPEATED_BYTE else size)
        total += largest if kind == COMPRESSED else size
    position += CHECKSUM_SIZE if descriptor & CHECKSUM else 0
    if position != end or content_size > total:
        return DECLINED
    bound: int = int64(total if content_size < 0 else content_size)
    return bound


@inlined
def _zstd_header(data: Region, start: int, end: int, descriptor: int) -> tuple[int, int, int]:
    """Return the start of a frame's blocks, its window, and the size of its content; negative if missing."""
    is_single, size_code = descriptor & SINGLE_SEGMENT, descriptor >> 6
    position = start + ZSTD_DESCRIPTOR + (1 if is_single else 2)
    size = 1 << size_code if size_code or is_single else 0
    if size > end - position:
        return position, -1, -1
    content_size = -1
    if size == 1:
        content_size = load_u8(data, position)
    elif size == 2:
        content_size = load_le16(data, position) + 256
    elif size == 4:
        content_size = load_le32(data, position)
    elif size == 8:
        content_size = load_64(data, position)
    if is_single:
        return position + size, content_size, content_size
    window = load_u8(data, position - 1)
    base = 1 << (10 + (window >> 3))
    return position + size, base + (base >> 3) * (window & 7), content_size


@helper
def decompress_zstd(data: Region, start: int, end: int, arena: Region, at: int, room: int, plan: Numbers) -> int:
    """Decompress a frame; return the end of its content in the arena, or `DAMAGED`, or `NO_ROOM`."""
    function, context = plan[DECODERS], plan[DECODERS + 1]
    bound = zstd_bound(data, start, end)
    if context == NONE or bound < 0:
        return DAMAGED
    if bound > room:
        return NO_ROOM
    target, source = address(arena, at, bound), address(data, start, end - start)
    size = foreign(function, (context, target, bound, source, end - start))
    return at + size if 0 <= size <= bound else DAMAGED


@helper
def decompress_gzip(data: Region, start: int, end: int, arena: Region, at: int, room: int, plan: Numbers) -> int:
    """Decompress a member, and verify its checksum and size; the result is as of `decompress_zstd`."""
    reset, inflate, stream_address = plan[DECODERS + 2], plan[DECODERS + 3], plan[DECODERS + 4]
    size = gzip_size(data, start, end)
    if stream_address == NONE or size < 0:
        return DAMAGED
    if size > room:
        return NO_ROOM
    stream, stored = (stream_address, STREAM_SIZE), end - start - GZIP_HEADER_SIZE - GZIP_TRAILER_SIZE
    foreign(reset, (stream_address,))
    store_64(stream, NEXT_OUT, address(arena, at, size + 1))
    store_32(stream, AVAIL_OUT, size + 1)
    store_64(stream, NEXT_IN, address(data, start + GZIP_HEADER_SIZE, stored))
    store_32(stream, AVAIL_IN, stored)
    answer = foreign(inflate, (stream_address,)) & MASK_32
    if answer != 0 or load_le32(stream, TOTAL_OUT) != size or load_le32(stream, AVAIL_IN) != 0:
        return DAMAGED
    if crc32(plan[CHECKSUM_PATH], arena, at, size) != load_le32(data, end - GZIP_TRAILER_SIZE):
        return DAMAGED
    return at + size


# -- decompression of a few entries ahead of reading -------------------------------------------------------------------


NO_CHUNK: Final = (-1, -1)
AHEAD_SIZE: Final = 2**17
"""Maximum bytes decompressed ahead: they fit the processor's inner caches."""


@inlined
def chunk_of(chunks: Region, state: Numbers, position: int) -> tuple[int, int]:
    """Return start and end of the content of the entry at a position in the arena, or `NO_CHUNK`."""
    while state[NEXT_CHUNK] < state[CHUNKS]:
        at = 8 * CHUNK_FIELDS * state[NEXT_CHUNK]
        if load_64(chunks, at) == position:
            return load_64(chunks, at + 8), load_64(chunks, at + 16)
        state[NEXT_CHUNK] += 1
    return NO_CHUNK


@helper
def decompress_entries(data: Region, arena: Bytes, plan: Numbers, state: Numbers, chunks: Numbers) -> int:
    """Decompress some entries from the position on into the arena, after its used part.

    The reader verifies checksums later: decompressing damaged bytes does no harm.

    Args:
        data: bytes of the log.
        arena: receives decompressed bytes.
        plan: parameters of the read.
        state: the position; afterwards also the number of chunks.
        chunks: receives the position of the content of each entry.

    Returns:
        The number of decompressed entries: 0 if the first is not covered; `NO_ROOM` if it did not fit.
    """
    arena_, position, used = region(arena), state[POSITION], state[ARENA_USED]
    stop, rows = used + AHEAD_SIZE, plan[MAX_ROWS] - state[ROWS]
    count, misses_room = 0, False
    while count < MAX_CHUNKS and used < stop and rows > 0:
        size = entry_size(data, position, data[1])
        if size < 0:
            break
        start, end, codec, is_frame_old = stored_bytes(data, position, size)
        left = len(arena) - SLACK - used
        room = min(left, plan[LIMIT])
        if left < 0 or start < 0:
            misses_room = start >= 0
            break
        if codec == LZ4:
            content_end = decompress_lz4(data, start, end, arena_, used, used + room, not is_frame_old)
        elif codec == SNAPPY:
            content_end = decompress_snappy(data, start, end, arena_, used, used + room)
        elif codec == ZSTD:
            content_end = decompress_zstd(data, start, end, arena_, used, room, plan)
        elif codec == GZIP:
            content_end = decompress_gzip(data, start, end, arena_, used, room, plan)
        else:
            break
        if content_end < 0:
            misses_room = content_end == NO_ROOM and room < plan[LIMIT]
            break
        chunks[CHUNK_FIELDS * count] = position
        chunks[CHUNK_FIELDS * count + 1] = used
        chunks[CHUNK_FIELDS * count + 2] = content_end
        used, count = content_end, count + 1
        if load_u8(data, position + MAGIC) == BATCH_MAGIC:
            rows -= load_be32(data, position + RECORDS_COUNT)
        position += size
    state[CHUNKS], state[NEXT_CHUNK] = count, 0
    return NO_ROOM if misses_room and count == 0 else count


@inlined
def decompress_next(data: Region, arena: Bytes, plan: Numbers, state: Numbers, chunks: Numbers) -> int:
    """Decompress for a reader; return 0, or the reason to stop if the entry at the position was not decompressed."""
    count = decompress_entries(data, arena, plan, state, chunks)
    if count == NO_ROOM:
        return FULL if state[ARENA_USED] else MORE_ARENA
    return 0 if count else DECOMPRESS


@kernel
def decompress_ahead(log: Bytes, arena: Bytes, plan: Numbers, state: Numbers, chunks: Numbers) -> int:
    """Decompress entries as `decompress_entries` does, for callers in Python. The position is one in the log."""
    return decompress_entries(region(log), arena, plan, state, chunks)


@inlined
def stored_bytes(data: Region, position: int, size: int) -> tuple[int, int, int, bool]:
    """Return start and end of an entry's compressed bytes (-1: none), their codec, and whether it is of magic 0."""
    magic, codec = load_u8(data, position + MAGIC), entry_codec(data, position)
    if magic == BATCH_MAGIC:
        return position + BATCH_HEADER_SIZE, position + size, codec, False
    key, _, value, value_size = message_parts(data, position, size)
    if key < 0 or value_size < 0:
        return -1, -1, codec, False
    return value, value + value_size, codec, magic == 0


def no_chunks() -> Numbers:
    """Return an empty table of chunks."""
    return np.zeros(CHUNK_FIELDS * MAX_CHUNKS, np.int64)
