"""Choose the engine that reads a log: the one that the caller names, else by the number of bytes to read."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNAR_SIZE: Final = 2**22
"""`Engine.AUTO` chooses the columnar engine above this number of bytes, in every process.

The start of the engine takes as long as plain code takes to verify 2 MB, or to recover 10 MB.
"""
ASKED: Final = "the caller asks for it"
NEEDED: Final = ("numpy", "pyarrow", "zstandard")
NOT_INSTALLED: Final = (
    f"the columnar engine needs {', '.join(NEEDED[:-1])} and {NEEDED[-1]}: pip install 'seglog-format[fast]'"
)


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

    @property
    def is_asked_for(self) -> bool:
        """Return whether the caller has named the engine."""
        return self.reason == ASKED


def choose(wanted: Engine, size: int, lacks: Callable[[], str | None]) -> Choice:
    """Choose an engine, by the rule for all callers.

    Args:
        wanted: the engine that the caller asks for.
        size: bytes to read, 0 or more; only used for `Engine.AUTO`.
        lacks: returns what the columnar engine lacks here, None if nothing; called only if it would be chosen.

    Raises:
        UsageError: the columnar engine is asked for, and lacks something.
    """
    if wanted is Engine.AUTO and size <= COLUMNAR_SIZE:
        return Choice(Engine.PLAIN, f"at most {COLUMNAR_SIZE} bytes to read")
    if wanted in {Engine.AUTO, Engine.COLUMNAR} and (lack := lacks()) is not None:
        if wanted is Engine.COLUMNAR:
            raise UsageError(lack)
        return Choice(Engine.PLAIN, lack)
    if wanted is Engine.AUTO:
        return Choice(Engine.COLUMNAR, f"more than {COLUMNAR_SIZE} bytes to read")
    return Choice(wanted, ASKED)


def engine_for(wanted: Engine, size: int) -> Choice:
    """Choose an engine for this process, as `choose` does.

    Args:
        wanted: the engine that the caller asks for.
        size: bytes to read; a caller may stop counting above `COLUMNAR_SIZE`.

    Raises:
        UsageError: the columnar engine is asked for, and lacks something.
    """
    found = choose(wanted, size, lacking)
    if wanted is Engine.AUTO and size > COLUMNAR_SIZE and found.reason != NOT_INSTALLED and not found.is_columnar:
        _report(found.reason)
    return found


@cache
def lacking() -> str | None:
    """Return what the columnar engine lacks here: a package, or kernels that were compiled; None if nothing."""
    if any(find_spec(name) is None for name in NEEDED):
        return NOT_INSTALLED
    from seglog_format.columnar.kernel_library import compiles_in_process, find_library  # noqa: PLC0415 - JSON

    found = None if compiles_in_process() else find_library()
    return found if isinstance(found, str) else None


def is_installed() -> bool:
    """Return whether the columnar engine can be used here."""
    return lacking() is None


@cache
def _report(lack: str) -> None:
    """Report once that the plain engine reads though the columnar engine is installed."""
    print(f"seglog: the plain engine reads, slowly: {lack}", file=sys.stderr)  # noqa: T201 - the user has to know the reason for the wait
