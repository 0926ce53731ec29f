"""Compilation of kernels by numba: for the library (`kernel_build`), and in the processes that check bounds.

With ``NUMBA_CACHE_DIR`` compiled code is kept there. numba does not see that a helper in another module has changed, so
the directory has to be of one state of the sources (`proofs.fuzz`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}
KERNELS: Final[list[Any]] = []
"""All kernels of the imported modules."""


def helper(function: FunctionT) -> FunctionT:
    """Compile a function into each kernel that calls it."""
    return cast("FunctionT", njit(**OPTIONS)(function))


def inlined(function: FunctionT) -> FunctionT:
    """Compile a helper that is always inlined into its callers, whatever its size."""
    return cast("FunctionT", njit(forceinline=True, **OPTIONS)(function))


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function that Python calls, at its first call."""
    return _kernel(function, OPTIONS)


def kernel_under_lock(function: FunctionT) -> FunctionT:
    """Compile a kernel that creates Python objects, and therefore holds the interpreter's lock."""
    return _kernel(function, {**OPTIONS, "nogil": False})


def _kernel(function: FunctionT, options: dict[str, Any]) -> FunctionT:
    dispatcher = njit(cache="NUMBA_CACHE_DIR" in os.environ, **options)(function)
    KERNELS.append(dispatcher)
    return cast("FunctionT", dispatcher)
