"""Functions of C libraries that kernels call for gzip and zstd, without returning to the interpreter for each entry.

The wheels of isal and zstandard contain the libraries. If the version of a wheel is unknown, or it does not export the
functions, or a test call fails, kernels do not call the library; Python calls it for each entry instead. The cost is in
`docs/explanation`, two engines.
"""

from __future__ import annotations

import ctypes
import weakref
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Final

from seglog_format.columnar.compiled import intrinsic, ir, types
from seglog_format.columnar.memory import I64

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
        GZIP_MODULE,
        ("isal_inflate_init", None, (ADDRESS,)),
        ("isal_inflate_stateless", ctypes.c_int, (ADDRESS,)),
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
