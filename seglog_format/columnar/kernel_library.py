"""Kernels that `seglog warm` compiled ahead of time: a shared object beside the package, loaded without numba.

A manifest beside it names the level of processors that it needs, and the digest of every module that it was compiled
from. A library that does not fit the processor or these modules is refused: its results would be those of other code.

Whoever can write to the directory can also change the package, so the directory needs no check of its own.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

PACKAGE: Final = Path(__file__).parent
DIRECTORY: Final = PACKAGE / "kernels"
MANIFEST: Final = "kernels.json"
OBJECT: Final = "kernels.so"
ENVIRONMENT: Final = "SEGLOG_KERNELS"
"""Environment variable: ``jit`` compiles kernels in the process, as the checks of bounds need it."""
COMPILER_SETTINGS: Final = ("NUMBA_BOUNDSCHECK", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
"""Settings of numba that only code compiled in the process can follow."""

V2: Final = frozenset({"sse4_2", "ssse3", "popcnt", "cx16", "lahf_lm", "pclmulqdq"})
V4: Final = (
    V2
    | {"avx2", "bmi1", "bmi2", "fma", "f16c", "movbe", "abm", "vpclmulqdq"}
    | {f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")}
)
LEVELS: Final = {"v4": V4, "v2": V2}
"""Instructions that each level needs, as Linux names them, best first."""
CHECKSUM_FEATURES: Final = {
    "v4": frozenset({"sse4.2", "pclmul", "avx512f", "vpclmulqdq"}),
    "v2": frozenset({"sse4.2", "pclmul"}),
}
"""Instructions that the checksum of each level was compiled with (`cpu.NEEDS`)."""

PASSED: Final = {
    "Bytes": "{0}.__array_interface__['data'][0], {0}.size",
    "Numbers": "{0}.__array_interface__['data'][0], {0}.size",
    "Table": "{0}.__array_interface__['data'][0], {0}.shape[0], {0}.shape[1]",
}
"""What is passed for an array of each type (`arrays`): its address and lengths."""
NUMBER_COUNTS: Final = {"Bytes": 2, "Numbers": 2, "Table": 3}
RESULTS: Final = {"int": "native({})", "bool": "native({}) != 0", "None": "native({})"}


class KernelLibrary:
    """A library that fits this processor and these sources.

    Attributes:
        level: of the processors that it was compiled for.
    """

    def __init__(self, manifest: Mapping[str, Any], path: Path) -> None:
        self.level: str = manifest["level"]
        self._kernels: Mapping[str, Mapping[str, Any]] = manifest["kernels"]
        self._free, self._held = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))  # the second keeps Python's lock

    @property
    def names(self) -> list[str]:
        """Return the names of the kernels."""
        return [*self._kernels]

    def kernel(self, name: str) -> Callable[..., Any]:
        """Return a kernel as a function of contiguous numpy arrays and numbers."""
        signature = self._kernels[name]
        native = (self._held if signature["holds_lock"] else self._free)[f"seglog_{name}"]
        count = sum(NUMBER_COUNTS.get(kind, 1) for _, kind in signature["takes"])
        native.restype, native.argtypes = ctypes.c_int64, [ctypes.c_int64] * count
        given = ", ".join(each for each, _ in signature["takes"])
        passed = ", ".join(PASSED.get(kind, "{0}").format(each) for each, kind in signature["takes"])
        space: dict[str, Any] = {"native": native}
        exec(f"def {name}({given}): return {RESULTS[signature['gives']].format(passed)}", space)  # noqa: S102 - so that no call looks at types
        function: Callable[..., Any] = space[name]
        return function


def digest(module: str) -> str:
    """Return the digest of a module of this package; empty if there is none."""
    path = PACKAGE / f"{module}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


@cache
def processor_level() -> str | None:
    """Return the best level that this processor has; None if it has none, or the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    flags = next(({*line.partition(":")[2].split()} for line in lines if line.startswith("flags")), set())
    return next((level for level, needed in LEVELS.items() if needed <= flags), None)


def compiles_here() -> bool:
    """Return whether the environment asks for kernels that are compiled in the process."""
    return os.environ.get(ENVIRONMENT) == "jit" or any(os.environ.get(name) for name in COMPILER_SETTINGS)


def misfit(manifest: Mapping[str, Any], digest_of: Callable[[str], str] = digest) -> str | None:
    """Return why a library may not be used here; None if it may."""
    has = processor_level()
    if manifest["level"] not in _levels_below(has):
        return f"it was compiled for processors of level {manifest['level']}, and this one has {has or 'none known'}"
    changed = sorted(name for name, kept in manifest["sources"].items() if digest_of(name) != kept)
    return f"{', '.join(changed)} changed since it was compiled" if changed else None


def _levels_below(level: str | None) -> Iterable[str]:
    names = [*LEVELS]
    return names[names.index(level) :] if level else ()


def open_library(directory: Path) -> KernelLibrary | None:
    """Open the library of a directory; None if there is none, or after a line to the user if it does not fit."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        reason = misfit(manifest)
        if reason is None:
            return KernelLibrary(manifest, directory / OBJECT)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = str(error)
    print(f"seglog: the library of compiled kernels is refused: {reason} (seglog warm makes another)", file=sys.stderr)  # noqa: T201 - the user has to know why the engine starts slowly
    return None


@cache
def library() -> KernelLibrary | None:
    """Return the library that this process uses; None if its kernels are compiled in the process, or not at all."""
    return None if compiles_here() else open_library(DIRECTORY)
