"""What an error means for the user: one line, and an exit status."""

from __future__ import annotations

import errno
from typing import Final

from seglog_format.cli.exit_status import NOT_WRITTEN, UNREADABLE, USAGE
from seglog_format.errors import SeglogError, UsageError, WriteError, reason_of

FAILURES: Final = (SeglogError, OSError, MemoryError, RecursionError)
"""Errors that a user can cause, whatever command is run. All others are defects of this program."""

WRITING: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Only an operation that writes fails with these."""

MISSING: Final = (FileNotFoundError, NotADirectoryError)


def status_of(error: BaseException) -> int:
    """The exit status for one of the `FAILURES`."""
    if isinstance(error, WriteError):
        return NOT_WRITTEN
    if isinstance(error, UsageError):
        return _usage_status(error)
    return NOT_WRITTEN if isinstance(error, OSError) and error.errno in WRITING else UNREADABLE


def _usage_status(error: UsageError) -> int:
    """A path that exists and cannot be opened is unreadable; a path that does not exist is wrong usage."""
    cause = error.__cause__
    return UNREADABLE if isinstance(cause, OSError) and not isinstance(cause, MISSING) else USAGE


def text_of(error: BaseException) -> str:
    """What one of the `FAILURES` says, on one line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, RecursionError):
        return "the input is nested too deeply"
    return reason_of(error) if isinstance(error, OSError) else str(error)
