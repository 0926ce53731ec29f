"""Which engine reads: the reference, or the columnar one, which is imported here and only when it is taken."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cli.collecting import without_collecting
from seglog_format.cli.options import ENGINES

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.checks.clearing import Clearer
    from seglog_format.cli.summaries import TableParts
    from seglog_format.recovery.volume import Volume

VOLUME: Final = 32 * 2**20
"""Bytes of logs from which on loading compiled code is worth while."""
NEEDED: Final = ("numpy", "numba")


def is_columnar(choice: str, size: int) -> bool:
    """Whether to take the columnar engine.

    Args:
        choice: what the user said.
        size: bytes of the logs to be read.
    """
    automatic, _, columnar = ENGINES
    if choice == automatic:
        return size > VOLUME and all(find_spec(name) is not None for name in NEEDED)
    return choice == columnar


def _module(name: str, choice: str, size: int) -> Any:  # noqa: ANN401 - whichever it is, imported only here
    """A module of the columnar engine; None where the reference is to read.

    Args:
        name: of the module.
        choice: what the user said.
        size: bytes of the logs to be read.

    Raises:
        UsageError: the columnar engine was asked for, and is not installed.
    """
    if not is_columnar(choice, size):
        return None
    from seglog_format.log.scanning import engine

    with without_collecting():
        return engine(name)


def clearer_for(choice: str, size: int) -> Clearer | None:
    """What passes over entries that no check has anything to say about; None for the reference.

    Arguments and errors are those of `_module`.
    """
    module = _module("clear", choice, size)
    return None if module is None else module.Clearing


def volume_for(choice: str, size: int) -> Volume | None:
    """What recovers and indexes what is regular; None for the reference.

    Arguments and errors are those of `_module`.
    """
    module = _module("index_volume", choice, size)
    return None if module is None else module.ColumnarVolume()


def tables_for(choice: str, size: int) -> TableParts | None:
    """What walks over the headers of regular entries; None for the reference.

    Arguments and errors are those of `_module`.
    """
    module = _module("batch_table", choice, size)
    return None if module is None else module.table_parts


def size_of_logs(path: Path) -> int:
    """Bytes of the log files that a path names.

    Raises:
        UsageError: it is nothing of Kafka's; see `path_kind`.
    """
    from seglog_format.lines import sources_of
    from seglog_format.lines.sources import SourceKind
    from seglog_format.log.path_kind import path_kind

    path_kind(path)

    return sum(source.size for source in sources_of(path) if source.kind is SourceKind.LOG)
