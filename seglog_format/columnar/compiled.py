"""Where kernels come from: the library that was compiled ahead (`kernel_library`).

The modules of kernels take all that they need of numba from here. Only processes that build the library or check bounds
import numba and compile (`jit`). In all others kernels alone can be called, and what they are compiled from stays as it
is written. Without a library that fits this module cannot be imported (`UsageError`), and the engine cannot be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from seglog_format.columnar.kernel_library import KernelLibrary, compiles_in_process, find_library
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
