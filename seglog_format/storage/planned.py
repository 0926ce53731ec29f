"""Plans for a directory, which are carried out only if it has not changed since."""

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
    """A plan for a directory. Nothing is written before `apply`."""

    _carry_out: Callable[[], OutcomeT] | None = field(default=None, compare=False, repr=False)

    def apply(self) -> OutcomeT:
        """Carry out the plan, if a new plan for the directory is still the same.

        Returns:
            The result.

        Raises:
            UsageError: the directory changed since this was planned; or this plan was already applied; or another
                process holds the lock of the log directory.
            UnreadableError: the disk refuses bytes that the plan depends on (SEG-PDR-022).
            FormatError: a file is damaged now, so no plan is possible.
            WriteError: a file change failed; changes so far are safe, and a new plan continues from there.
        """
        if self._carry_out is None:
            msg = "there is nothing to apply: this plan was applied already, or was made to be read only"
            raise UsageError(msg)
        return self._carry_out()


def require_unchanged(planned: object, found: object, path: str | os.PathLike[str]) -> None:
    """Refuse to carry out a plan that differs from the current one.

    Args:
        planned: the plan to carry out; None for the current one.
        found: the current plan.
        path: of the directory.

    Raises:
        UsageError: the plans differ.
    """
    if planned is not None and found != planned:
        msg = f"{path} has changed since this was planned: plan again"
        raise UsageError(msg)


class FileState(NamedTuple):
    """The attributes of a file that change whenever its content does, found without reading it."""

    name: str
    size: int
    modified_ns: int
    inode: int


def states_of(directory: Path) -> tuple[FileState, ...]:
    """Return the states of all entries of a directory, by name.

    Raises:
        WriteError: the directory cannot be read.
    """
    with write_errors("listing the files"), os.scandir(directory) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    return tuple(sorted(FileState(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in found))
