"""Kernels that `seglog warm` compiled ahead of time: libraries beside the package, loaded without numba.

A manifest beside each names the level of processors that it needs, and the digest of every module that it was compiled
from. A library that does not fit the processor or these modules is refused: its results would be those of other code.

A user who can write to the directory can also change the package, so the directory needs no check of its own.
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
    from collections.abc import Callable, Mapping

PACKAGE: Final = Path(__file__).parent
DIRECTORY: Final = PACKAGE / "kernels"
"""Holds a directory for each level."""
MANIFEST: Final = "kernels.json"
LINKED: Final = "kernels.so"
UNLINKED: Final = "kernels.o"
"""What is made where no linker is: llvmlite, which comes with numba, loads it."""
ENVIRONMENT: Final = "SEGLOG_KERNELS"
"""Environment variable: ``jit`` compiles kernels in the process, as the checks of bounds need it."""

V2: Final = frozenset({"sse4_2", "ssse3", "popcnt", "cx16", "lahf_lm", "pclmulqdq"})
V4: Final = (
    V2
    | {"avx2", "bmi1", "bmi2", "fma", "f16c", "movbe", "abm", "vpclmulqdq"}
    | {f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")}
)
LEVELS: Final = {"v4": V4, "v2": V2, "any": frozenset[str]()}
"""Instructions that each level needs, as Linux names them, best first; the last is for whatever is no x86-64."""
CHECKSUM_FEATURES: Final = {
    "v4": frozenset({"sse4.2", "pclmul", "avx512f", "vpclmulqdq"}),
    "v2": frozenset({"sse4.2", "pclmul"}),
    "any": frozenset[str](),
}
"""Instructions that the checksum of each level was compiled with (`compiled.NEEDS`)."""

PASSED: Final = {
    "Bytes": "{0}.__array_interface__['data'][0], {0}.size",
    "Numbers": "{0}.__array_interface__['data'][0], {0}.size",
    "Table": "{0}.__array_interface__['data'][0], {0}.shape[0], {0}.shape[1]",
}
"""What is passed for an array of each type (`arrays`): its address and lengths."""
NUMBER_COUNTS: Final = {"Bytes": 2, "Numbers": 2, "Table": 3}
RESULTS: Final = {"int": "native({})", "bool": "native({}) != 0", "None": "native({})"}

NOT_COMPILED: Final = (
    "compiled kernels are not here (pip install 'seglog-format[compile]' and then seglog warm make them for this "
    "machine; a wheel for Linux on x86-64 has them)"
)


class KernelLibrary:
    """A library that fits this processor and these sources.

    Attributes:
        level: of the processors that it was compiled for.
    """

    def __init__(self, manifest: Mapping[str, Any], directory: Path) -> None:
        self.level: str = manifest["level"]
        self._kernels: Mapping[str, Mapping[str, Any]] = manifest["kernels"]
        self._native = _native_functions(directory / manifest["file"])

    @property
    def names(self) -> list[str]:
        """Return the names of the kernels."""
        return [*self._kernels]

    def kernel(self, name: str) -> Callable[..., Any]:
        """Return a kernel as a function of contiguous numpy arrays and numbers."""
        signature = self._kernels[name]
        count = sum(NUMBER_COUNTS.get(kind, 1) for _, kind in signature["takes"])
        native = self._native(f"seglog_{name}", count, signature["holds_lock"])
        given = ", ".join(each for each, _ in signature["takes"])
        passed = ", ".join(PASSED.get(kind, "{0}").format(each) for each, kind in signature["takes"])
        space: dict[str, Any] = {"native": native}
        exec(f"def {name}({given}): return {RESULTS[signature['gives']].format(passed)}", space)  # noqa: S102 - no call has to look at types
        function: Callable[..., Any] = space[name]
        return function


def _native_functions(path: Path) -> Callable[[str, int, bool], Callable[..., Any]]:
    """Load a file of kernels; return the function that finds one by symbol, count of numbers, and need of the lock."""
    if path.name == LINKED:
        free, held = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))  # the second keeps Python's lock

        def linked(symbol: str, count: int, holds_lock: bool) -> Callable[..., Any]:
            native = (held if holds_lock else free)[symbol]
            native.restype, native.argtypes = ctypes.c_int64, [ctypes.c_int64] * count
            return native

        return linked
    from llvmlite import binding as llvm  # noqa: PLC0415 - needed where there is no linker

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_path(str(path)))
    engine.finalize_object()

    def unlinked(symbol: str, count: int, holds_lock: bool) -> Callable[..., Any]:
        kind = ctypes.PYFUNCTYPE if holds_lock else ctypes.CFUNCTYPE
        found: Callable[..., Any] = kind(*[ctypes.c_int64] * (1 + count))(engine.get_function_address(symbol))
        return found

    return unlinked


def digest(module: str) -> str:
    """Return the digest of a module of this package; empty if there is none."""
    path = PACKAGE / f"{module}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def machine_name() -> str:
    """Return the system and the family of processors; the latter is empty where the system does not say."""
    return f"{sys.platform} {os.uname().machine if hasattr(os, 'uname') else ''}"


@cache
def processor_level() -> str:
    """Return the best level that this processor has, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    flags = next(({*line.partition(":")[2].split()} for line in lines if line.startswith("flags")), set())
    return next(level for level, needed in LEVELS.items() if needed <= flags)


def compiles_in_process() -> bool:
    """Return whether the environment asks for kernels that are compiled in the process."""
    return os.environ.get(ENVIRONMENT) == "jit"


def misfit(manifest: Mapping[str, Any]) -> str | None:
    """Return why a library may not be used here; None if it may."""
    names, has = [*LEVELS], processor_level()
    if manifest["machine"] != machine_name() or names.index(manifest["level"]) < names.index(has):
        return f"it was compiled for {manifest['machine']} of level {manifest['level']}, not {machine_name()} of {has}"
    changed = sorted(name for name, kept in manifest["sources"].items() if digest(name) != kept)
    return f"{', '.join(changed)} changed since it was compiled" if changed else None


def open_library(directory: Path) -> KernelLibrary | str | None:
    """Open a library; return the reason if it does not fit, None if there is none."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        return misfit(manifest) or KernelLibrary(manifest, directory)
    except FileNotFoundError:
        return None
    except (ImportError, OSError, ValueError, LookupError, TypeError, RuntimeError) as error:
        return str(error)


@cache
def find_library() -> KernelLibrary | str:
    """Return the best library that fits, else one line: why there is none, and how to get one."""
    reasons = []
    for level in LEVELS:
        found = open_library(DIRECTORY / level)
        if isinstance(found, KernelLibrary):
            return found
        reasons += [found] if found else []
    if not reasons:
        return NOT_COMPILED
    return f"the library of compiled kernels is refused: {reasons[-1]} (seglog warm makes another)"


def library() -> KernelLibrary | None:
    """Return the library that this process uses; None if its kernels are compiled in the process, or not at all."""
    found = None if compiles_in_process() else find_library()
    return found if isinstance(found, KernelLibrary) else None
