"""Choose the engine that reads a log: the one that the caller names, else by the number of bytes to read."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from typing import Final, NamedTuple

from seglog_format.columnar.kernel_library import library
from seglog_format.errors import UsageError

START_SIZE: Final = 2**25
"""`Engine.AUTO` chooses the columnar engine above this number of bytes: loading it takes half a second."""
LOADED_SIZE: Final = 2**20
"""The same number where a library has the kernels, or the process has already loaded the columnar engine."""
COMPILER: Final = "numba"
NEEDED: Final = (COMPILER, "numpy", "pyarrow", "zstandard")
NOT_INSTALLED: Final = (
    f"the columnar engine needs {', '.join(NEEDED[:-1])} and {NEEDED[-1]}: pip install 'seglog-format[fast]'"
)
COMPILED: Final = "seglog_format.columnar.compiled"


class Engine(StrEnum):
    """Reader of a log. Results do not depend on it.

    Attributes:
        AUTO: the columnar engine for large inputs, if it is installed; else the plain decoders.
        REFERENCE: decoders that parse with the declarations themselves, slowly.
        PLAIN: hand-written decoders in plain Python.
        COLUMNAR: compiled code, which leaves every entry that it does not cover to the plain decoders; needs the extra
            ``fast``.

    Examples:
        >>> from seglog_format import Engine, open_partition
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     record = next(log.records(100, engine=Engine.REFERENCE))
        ...     log.engine_for().engine
        <Engine.PLAIN: 'plain'>
    """

    AUTO = "auto"
    REFERENCE = "reference"
    PLAIN = "plain"
    COLUMNAR = "columnar"


class Choice(NamedTuple):
    """Which engine reads, and why.

    Attributes:
        engine: any but `Engine.AUTO`.
        reason: text of the reason.
    """

    engine: Engine
    reason: str

    @property
    def is_columnar(self) -> bool:
        """Return whether the columnar engine reads."""
        return self.engine is Engine.COLUMNAR


def choose(wanted: Engine, size: int, *, is_installed: bool, is_loaded: bool) -> Choice:
    """Choose an engine, by the rule for all callers.

    Args:
        wanted: the engine that the caller asks for.
        size: bytes to read, 0 or more; only used for `Engine.AUTO`.
        is_installed: whether the packages that the columnar engine needs are installed.
        is_loaded: whether this process has already loaded the columnar engine.

    Raises:
        UsageError: the columnar engine is asked for, and not installed.
    """
    if wanted is not Engine.AUTO:
        if wanted is Engine.COLUMNAR and not is_installed:
            raise UsageError(NOT_INSTALLED)
        return Choice(wanted, "the caller asks for it")
    if not is_installed:
        return Choice(Engine.PLAIN, NOT_INSTALLED)
    threshold = LOADED_SIZE if is_loaded else START_SIZE
    if size > threshold:
        return Choice(Engine.COLUMNAR, f"more than {threshold} bytes to read")
    return Choice(Engine.PLAIN, f"at most {threshold} bytes to read")


def engine_for(wanted: Engine, size: int) -> Choice:
    """Choose an engine for this process, as `choose` does.

    Args:
        wanted: the engine that the caller asks for.
        size: bytes to read; a caller may stop counting above `threshold`.

    Raises:
        UsageError: the columnar engine is asked for, and not installed.
    """
    return choose(wanted, size, is_installed=is_installed(), is_loaded=is_loaded())


def threshold() -> int:
    """Return the number of bytes above which `Engine.AUTO` is the columnar engine in this process, if installed."""
    return LOADED_SIZE if is_loaded() else START_SIZE


@cache
def is_installed() -> bool:
    """Return whether the packages that the columnar engine needs are installed: with a library, all but numba."""
    return all(find_spec(name) is not None for name in NEEDED if name != COMPILER or library() is None)


def is_loaded() -> bool:
    """Return whether this process has the columnar engine at hand: in a library, or loaded already.

    With a library the answer is the same in every process, whatever it did before.
    """
    return library() is not None or COMPILED in sys.modules
