"""Plans for a directory, which are carried out only where it still is as it was when they were made."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from seglog_format.errors import UsageError, write_errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OutcomeT = TypeVar("OutcomeT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[OutcomeT]):
    """What would be done to a directory. Nothing is written before `apply`."""

    _carry_out: Callable[[], OutcomeT] | None = field(default=None, compare=False, repr=False)

    def apply(self) -> OutcomeT:
        """Do what is planned, if the directory still is as it was then. It is planned again to know that.

        Returns:
            What was done.

        Raises:
            UsageError: the directory changed since this was planned, by applying this plan, say; this only tells what
                was done; or another process holds the lock of the log directory.
            UnreadableError: the disk refuses something that the plan depends on (SEG-PDR-022).
            FormatError: a file is damaged now, so that nothing can be planned.
            WriteError: a change did not work; what was done is safe, and a new plan goes on from there.
        """
        if self._carry_out is None:
            msg = "there is nothing to apply: this tells what was done, or what could be done if it were a directory"
            raise UsageError(msg)
        return self._carry_out()


def require_unchanged(planned: object, found: object, path: str | os.PathLike[str]) -> None:
    """Refuse to carry out a plan that is another one now.

    Args:
        planned: at first; None to carry out whatever is planned now.
        found: the same, planned now.
        path: of the directory.

    Raises:
        UsageError: they differ.
    """
    if planned is not None and found != planned:
        msg = f"{path} has changed since this was planned: plan again"
        raise UsageError(msg)


class FileState(NamedTuple):
    """What tells one state of a file from another without reading it."""

    name: str
    size: int
    modified_ns: int
    inode: int


def states_of(directory: Path) -> tuple[FileState, ...]:
    """The states of all entries of a directory, by name.

    Raises:
        WriteError: the directory cannot be read.
    """
    with write_errors("looking at the files"), os.scandir(directory) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    return tuple(sorted(FileState(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found))
