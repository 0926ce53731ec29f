"""Exit statuses: one table for all commands, the help page, the man page and the documentation."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
UNREADABLE: Final = 3
NOT_WRITTEN: Final = 4
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141

STATUSES: Final[Mapping[int, tuple[str, str]]] = MappingProxyType(
    {
        DONE: ("done", "The command did what it was asked to do, and there is nothing to report."),
        FINDINGS: (
            "findings",
            "The command did its work, and reports something: an error, damage, a loss, a difference, no such record.",
        ),
        USAGE: ("wrong usage", "An option, an argument or a PATH makes no sense. Nothing was read or written."),
        UNREADABLE: (
            "unreadable",
            "Something could not be read: no permission, a failing disk, a limit, damage that ends it, no more memory.",
        ),
        NOT_WRITTEN: (
            "not written",
            "Writing failed: a full disk, a failing disk, no permission. Nothing that was there before is lost.",
        ),
        INTERRUPTED: ("interrupted", "Ctrl-C ended the command."),
        PIPE_CLOSED: ("closed pipe", "The program that read standard output ended first."),
    }
)
"""A short name and the meaning of each exit status. If several apply, the command ends with the greatest."""

SUMMARY: Final = ", ".join(f"{status} {name}" for status, (name, _) in STATUSES.items() if status <= NOT_WRITTEN)
"""The statuses that commands return, in one line."""
