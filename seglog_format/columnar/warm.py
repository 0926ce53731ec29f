"""Compilation of every kernel in advance, in as many processes as there are processors."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from numba import types

from seglog_format.columnar import jit
from seglog_format.errors import UsageError
from seglog_format.storage.child_processes import process_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_ONLY: Final = frozenset({"log", "data"})
"""Parameters of kernels for bytes that are not writable."""
MARKS: Final = ("@kernel\n", "@kernel_under_lock\n")


def _type_of(name: str, annotation: str) -> Any:
    """Return the type of a kernel's parameter (`arrays`)."""
    return {
        "Bytes": types.Array(types.uint8, 1, "C", readonly=name in READ_ONLY),
        "Numbers": types.Array(types.int64, 1, "C"),
        "Table": types.Array(types.int64, 2, "C"),
        "int": types.int64,
        "bool": types.boolean,
    }[annotation]


def signature_of(kernel: Any) -> tuple[Any, ...]:
    """Return the types that a kernel is compiled for."""
    annotations = kernel.py_func.__annotations__
    return tuple(_type_of(name, kind) for name, kind in annotations.items() if name != "return")


def modules() -> list[str]:
    """Return the modules with kernels, those that take longest first."""
    package = Path(__file__).parent
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(package.glob("*.py"))}
    holders = [name for name, text in texts.items() if any(mark in text for mark in MARKS)]
    return sorted(holders, key=lambda name: -len(jit.sources(name)))


def warm(processes: int | None = None) -> Iterator[tuple[str, bool]]:
    """Compile the kernels that are not stored on disk yet, and store them.

    Args:
        processes: number of processes; by default one for each processor.

    Yields:
        The name of each kernel, and whether it was compiled just now.

    Raises:
        UsageError: the directory for the code is refused, since other users can write to it.
    """
    import_module(f"seglog_format.columnar.{modules()[-1]}")  # the smallest module: it finds the directory of the code
    if jit.REFUSED:
        msg = f"compiled code is not kept, since {jit.REFUSED[0]}: set NUMBA_CACHE_DIR to a directory of your own"
        raise UsageError(msg)
    with process_pool(processes) as pool:
        for done in pool.map(_warmed, modules()):
            yield from done


def _warmed(module: str) -> list[tuple[str, bool]]:
    jit.NOTICE.was_given = True
    import_module(f"seglog_format.columnar.{module}")
    done = []
    for kernel in jit.KERNELS:
        if kernel.py_func.__module__.endswith(f".{module}"):
            kernel.compile(signature_of(kernel))
            done.append((kernel.py_func.__name__, bool(kernel.stats.cache_misses)))
    return done
