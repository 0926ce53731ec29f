"""Where kernels come from: the library that was compiled ahead (`kernel_library`).

The modules of kernels take all that they need of numba from here. Only processes that build the library or check bounds
import numba and compile (`jit`). In all others kernels alone can be called, and what they are compiled from stays as it
is written. Without a library that fits this module cannot be imported (`UsageError`), and the engine cannot be used.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from seglog_format.columnar.kernel_library import CHECKSUM_FEATURES, KernelLibrary, compiles_in_process, find_library
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")
FOUND: Final = None if compiles_in_process() else find_library()
LIBRARY: Final = FOUND if isinstance(FOUND, KernelLibrary) else None

__all__ = [
    "LIBRARY",
    "cgutils",
    "config",
    "helper",
    "inlined",
    "int64",
    "intrinsic",
    "ir",
    "kernel",
    "kernel_under_lock",
    "types",
    "uint64",
]


class Unused:
    """Stands for what modules take from the compiler when they are imported, where nothing is compiled."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_given: object) -> Any:
        """Return an object that is unused as well."""
        return self


def _unchanged(function: FunctionT) -> FunctionT:
    return function


def _from_library(function: FunctionT) -> FunctionT:
    assert LIBRARY is not None
    return cast("FunctionT", LIBRARY.kernel(function.__name__))


if isinstance(FOUND, str):
    raise UsageError(FOUND)
if LIBRARY is None:
    from llvmlite import ir
    from numba import int64, types, uint64
    from numba.core import cgutils, config
    from numba.extending import intrinsic

    from seglog_format.columnar.jit import helper, inlined, kernel, kernel_under_lock
else:
    cgutils = config = int64 = ir = types = uint64 = Unused()
    helper = inlined = intrinsic = _unchanged
    kernel = kernel_under_lock = _from_library


# -- the instructions of this processor, and the checksum path that they allow -----------------------------------------


ENVIRONMENT: Final = "SEGLOG_CHECKSUM_PATH"
"""Environment variable that forces a path: ``portable``, ``narrow`` or ``wide``."""

PORTABLE: Final = 0
"""Tables; correct on any processor."""
NARROW: Final = 1
"""SSE 4.2 and carry-less products of 128 bits."""
WIDE: Final = 2
"""AVX-512 with carry-less products of 512 bits."""

PATHS: Final = {"portable": PORTABLE, "narrow": NARROW, "wide": WIDE}
NEEDS: Final = {
    PORTABLE: frozenset[str](),
    NARROW: frozenset({"sse4.2", "pclmul"}),
    WIDE: frozenset({"sse4.2", "pclmul", "avx512f", "vpclmulqdq"}),
}


@cache
def features() -> frozenset[str]:
    """Return the features that code may use: those of the library of kernels, of numba's settings, or the processor's.

    A checksum that was not compiled for its path would give 0, and each batch would be left to the fallback decoder.
    """
    if LIBRARY is not None:
        return CHECKSUM_FEATURES[LIBRARY.level]
    if config.CPU_NAME or config.CPU_FEATURES:
        reported = (config.CPU_FEATURES or "").split(",")
        return frozenset(name[1:] for name in reported if name.startswith("+"))
    from llvmlite import binding  # noqa: PLC0415 - comes with numba

    return frozenset(name for name, has in binding.get_host_cpu_features().items() if has)


def supports(path: int) -> bool:
    """Return whether this processor can run a path."""
    return NEEDS[path] <= features()


def checksum_path() -> int:
    """Return the fastest path that this processor supports, or a slower one that was requested."""
    forced = PATHS.get(os.environ.get(ENVIRONMENT, ""), WIDE)
    return max(path for path in NEEDS if path <= forced and supports(path))
