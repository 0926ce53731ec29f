"""How kernels are compiled, and where the compiled code is kept.

numba keeps machine code on disk beside the source, or in the user's cache directory where that is read-only, or where
``NUMBA_CACHE_DIR`` says. From a directory that other users can write to, none is taken (`kept_code`).

A kernel also holds the code of all its helpers. So what is kept is stamped with the state of every module that it was
made from (`kept_kernel`).
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit
from numba.core import event

from seglog_format.columnar.kept_code import refusal
from seglog_format.columnar.kept_kernel import load_quickly

if TYPE_CHECKING:
    from collections.abc import Callable

FunctionT = TypeVar("FunctionT", bound="Callable[..., Any]")

OPTIONS: Final[dict[str, Any]] = {"nogil": True, "error_model": "numpy"}

HERE: Final = Path(__file__).parent
IMPORTED: Final = re.compile(r"^\s*from seglog_format\.columnar(?:\.(\w+))? import (\w+(?:, \w+)*|\()", re.MULTILINE)

KERNELS: Final[list[Any]] = []
"""Every kernel, so that somebody can compile them ahead."""

WORD: Final = "seglog: compiling the columnar engine for this machine, which takes some seconds, once (seglog warm)"
REFUSED: Final[list[str]] = []
"""Why the directory of kept code is refused; empty if it is not."""


class Teller(event.Listener):  # type: ignore[misc] # numba has no types
    """Tells the user why the first call of a kernel takes long.

    Attributes:
        has_told: whether it did, or need not.
    """

    has_told = False

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled, because it is not kept on disk."""
        if not self.has_told and event.data["dispatcher"] in KERNELS:
            self.has_told = True
            print(_word(), file=sys.stderr, flush=True)  # noqa: T201 - whoever waits has to know

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def _word() -> str:
    """What is going on; the reason too where it will go on again in the next process."""
    if not REFUSED:
        return WORD
    return f"seglog: compiling the columnar engine, in this process only: no compiled code is kept, since {REFUSED[0]}"


TELLER: Final = Teller()
event.register("numba:compile", TELLER)


def helper(function: FunctionT) -> FunctionT:
    """A function that kernels call; it becomes part of each."""
    return cast("FunctionT", njit(**OPTIONS)(function))


def inlined(function: FunctionT) -> FunctionT:
    """A helper that machine code never calls: it becomes part of its callers, whatever its size."""
    return cast("FunctionT", njit(forceinline=True, **OPTIONS)(function))


def kernel(function: FunctionT) -> FunctionT:
    """A function that Python calls, compiled when it is first called and kept on disk."""
    return _kept(function, OPTIONS)


def kernel_under_lock(function: FunctionT) -> FunctionT:
    """A kernel that makes Python objects, and holds the interpreter's lock for that."""
    return _kept(function, {**OPTIONS, "nogil": False})


def _kept(function: FunctionT, options: dict[str, Any]) -> FunctionT:
    dispatcher = _kept_on_disk(function, options) or njit(**options)(function)
    KERNELS.append(dispatcher)
    return cast("FunctionT", dispatcher)


def _kept_on_disk(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A kernel whose code is kept; None where there is no directory to keep it in, or others can write to that."""
    try:
        dispatcher = njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write: compiled anew in each process
        return None
    if reason := refusal(dispatcher.stats.cache_path):
        REFUSED.append(reason)
        return None
    load_quickly(dispatcher, function, _state_of(sources(Path(function.__code__.co_filename).stem)))
    return dispatcher


def _state_of(names: frozenset[str]) -> tuple[float, int]:
    """Latest change and total size of some modules."""
    states = [(HERE / f"{name}.py").stat() for name in names]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


@cache
def sources(module: str) -> frozenset[str]:
    """A module of this package, and those that it imports, directly or not."""
    found, open_ends = {module}, [module]
    while open_ends:
        new = _imported(open_ends.pop()) - found
        found |= new
        open_ends += new
    return frozenset(found)


@cache
def _imported(module: str) -> frozenset[str]:
    """The modules of this package that one of them imports."""
    text = (HERE / f"{module}.py").read_text(encoding="utf-8")
    found = IMPORTED.findall(text)
    names = [name for module, imported in found for name in ([module] if module else imported.split(", "))]
    return frozenset(name for name in names if (HERE / f"{name}.py").exists())
