"""Compilation of kernels, and the directory of compiled code.

numba stores machine code on disk beside the source, or in the user's cache directory if the source is read-only, or in
``NUMBA_CACHE_DIR``. No code is loaded from a directory that other users can write to (`code_cache`).

A kernel also holds the code of all its helpers. So stored code is stamped with the state of every module that it was
compiled from (`kernel_loading`).
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit
from numba.core import event

from seglog_format.columnar.code_cache import refusal
from seglog_format.columnar.kernel_loading import load_cached

if TYPE_CHECKING:
    from collections.abc import Callable

FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}

PACKAGE: Final = Path(__file__).parent
IMPORTED: Final = re.compile(r"^\s*from seglog_format\.columnar(?:\.(\w+))? import (\w+(?:, \w+)*|\()", re.MULTILINE)

KERNELS: Final[list[Any]] = []
"""All kernels, for compilation in advance."""

WORD: Final = "seglog: compiling the columnar engine for this machine, which takes some seconds, once (seglog warm)"
REFUSED: Final[list[str]] = []
"""Reason for which the directory of stored code is refused; empty if it is not refused."""


class CompileNotice(event.Listener):  # type: ignore[misc] # numba has no types
    """Explains to the user why the first call of a kernel takes long.

    Attributes:
        was_given: whether the notice was printed, or is not needed.
    """

    was_given = False

    def on_start(self, event: Any) -> None:
        """Print the notice before a function is compiled because its code is not stored on disk."""
        if not self.was_given and event.data["dispatcher"] in KERNELS:
            self.was_given = True
            print(_word(), file=sys.stderr, flush=True)  # noqa: T201 - the user has to know the reason for the wait

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def _word() -> str:
    """Return the text of the notice, with the reason if the next process has to compile again."""
    if not REFUSED:
        return WORD
    return f"seglog: compiling the columnar engine, in this process only: no compiled code is kept, since {REFUSED[0]}"


NOTICE: Final = CompileNotice()
event.register("numba:compile", NOTICE)


def helper(function: FunctionT) -> FunctionT:
    """Compile a function into each kernel that calls it."""
    return cast("FunctionT", njit(**OPTIONS)(function))


def inlined(function: FunctionT) -> FunctionT:
    """Compile a helper that is always inlined into its callers, whatever its size."""
    return cast("FunctionT", njit(forceinline=True, **OPTIONS)(function))


def kernel(function: FunctionT) -> FunctionT:
    """Compile a function that Python calls, at its first call, and store the code on disk."""
    return _kept(function, OPTIONS)


def kernel_under_lock(function: FunctionT) -> FunctionT:
    """Compile a kernel that creates Python objects, and therefore holds the interpreter's lock."""
    return _kept(function, {**OPTIONS, "nogil": False})


def _kept(function: FunctionT, options: dict[str, Any]) -> FunctionT:
    dispatcher = _kept_on_disk(function, options) or njit(**options)(function)
    KERNELS.append(dispatcher)
    return cast("FunctionT", dispatcher)


def _kept_on_disk(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Return a kernel whose code is stored; None if there is no directory for it, or other users can write there."""
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError:  # no directory is writable: the kernel is compiled again in each process
        return None
    if reason := refusal(dispatcher.stats.cache_path):
        REFUSED.append(reason)
        return None
    load_cached(dispatcher, function, _state_of(sources(Path(function.__code__.co_filename).stem)))
    return dispatcher


def _state_of(names: frozenset[str]) -> tuple[float, int]:
    """Return latest change and total size of some modules."""
    states = [(PACKAGE / f"{name}.py").stat() for name in names]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


@cache
def sources(module: str) -> frozenset[str]:
    """Return a module of this package, and those that it imports, directly or not."""
    found, open_ends = {module}, [module]
    while open_ends:
        new = _imported(open_ends.pop()) - found
        found |= new
        open_ends += new
    return frozenset(found)


@cache
def _imported(module: str) -> frozenset[str]:
    """Return the modules of this package that one of them imports."""
    text = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    found = IMPORTED.findall(text)
    names = [name for module, imported in found for name in ([module] if module else imported.split(", "))]
    return frozenset(name for name in names if (PACKAGE / f"{name}.py").exists())
