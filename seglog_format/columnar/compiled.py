"""How kernels are compiled, and where the compiled code is kept.

numba keeps machine code on disk beside the source, or in the user's cache directory where that is read-only, or where
``NUMBA_CACHE_DIR`` says. It looks at one source file only to see whether the code is still current; but a kernel also
holds the code of all its helpers. So what is kept is stamped with the state of this whole package.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit, types

if TYPE_CHECKING:
    from collections.abc import Callable

FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}

STAMP: Final = "_source_stamp"

KERNELS: Final[list[Any]] = []
"""Every kernel, so that somebody can compile them ahead."""


def helper(function: FunctionT) -> FunctionT:
    """A function that kernels call; it becomes part of each."""
    return cast("FunctionT", _for_any_value(njit(**OPTIONS)(function)))


def hot(function: FunctionT) -> FunctionT:
    """A helper that machine code never calls: LLVM puts it into its callers, after it was analysed once."""
    return cast("FunctionT", _for_any_value(njit(forceinline=True, **OPTIONS)(function)))


def _for_any_value(dispatcher: Any) -> Any:
    """Compile a helper once for its types: by itself numba compiles anew for each constant that is passed."""
    for_types = dispatcher.get_call_template

    def for_any_value(arguments: Any, names: Any) -> Any:
        return for_types(tuple(map(types.unliteral, arguments)), names)

    dispatcher.get_call_template = for_any_value
    return dispatcher


def inlined(function: FunctionT) -> FunctionT:
    """A helper of a single caller, or of a few instructions: written into its callers before they are compiled."""
    return cast("FunctionT", njit(inline="always", **OPTIONS)(function))


def kernel(function: FunctionT) -> FunctionT:
    """A function that Python calls, compiled when it is first called and kept on disk."""
    dispatcher = njit(**OPTIONS)(function)
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # nowhere to write: compiled anew in each process
        pass
    else:
        _stamp(dispatcher)
    KERNELS.append(dispatcher)
    return cast("FunctionT", dispatcher)


def _stamp(dispatcher: Any) -> None:
    """Let kept code be current as long as no module of this package changes; numba has no public way to say so."""
    kept = getattr(dispatcher, "_cache", None)
    for holder in (kept, getattr(kept, "_cache_file", None)):
        if hasattr(holder, STAMP):
            setattr(holder, STAMP, _package_stamp())


@cache
def _package_stamp() -> tuple[float, int]:
    """Latest change and total size of the sources of this package."""
    states = [path.stat() for path in sorted(Path(__file__).parent.glob("*.py"))]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)
