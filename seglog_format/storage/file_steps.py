"""File changes as values: they are planned, can be shown, and are carried out in order.

After a crash, each step has either happened completely or not at all. A new plan from the files on disk then finishes
the work, so a planner only has to choose the order of the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from seglog_format.errors import FormatError, Location
from seglog_format.storage.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.storage.files import Files


COPIED_SIZE: Final = 4 * 2**20
"""Maximum bytes copied at once."""


class FileStep(Protocol):
    """One file change. `requirement` is the id of the rule that requires it."""

    @property
    def path(self) -> Path:
        """The file that changes."""

    @property
    def requirement(self) -> str:
        """Id of the rule; empty for a step that only makes earlier ones durable."""

    @property
    def text(self) -> str:
        """Short description of the change."""

    def apply(self, files: Files) -> None:
        """Carry out the step.

        Raises:
            OSError: an operation on files failed.
        """


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a file."""

    path: Path
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return "remove"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        files.remove(self.path)


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename a file, and by default replace an existing file of the new name.

    Attributes:
        path, target: old and new path.
        requirement: id of the rule.
        replaces: whether to replace a file that has the new name; if False, the step fails.
    """

    path: Path
    target: Path
    requirement: str
    replaces: bool = True

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"rename to {self.target.name}"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        if self.replaces:
            files.rename(self.path, self.target)
        else:
            files.publish(self.path, self.target)


@dataclass(frozen=True, slots=True)
class Truncate:
    """Truncate a file; the change is on disk when the step ends."""

    path: Path
    size: int
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"cut to {self.size} bytes"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        handle = files.open_append(self.path)
        try:
            handle.truncate(self.size)
            handle.fsync()
        finally:
            handle.close()


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the content of a file; after a crash the file has the complete old or new content."""

    path: Path
    data: bytes = field(repr=False)
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"write {len(self.data)} bytes"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        replace_file(files, self.path, self.data)


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a part of a file to a new file, whose content is on disk when the step ends."""

    source: Path
    start: int
    end: int
    path: Path
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"write bytes {self.start} to {self.end} of {self.source.name}"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        handle = files.create(self.path)
        try:
            with files.open(self.source) as source:
                for start in range(self.start, self.end, COPIED_SIZE):
                    handle.write(source.view(start, min(start + COPIED_SIZE, self.end)))
            handle.fsync()
        finally:
            handle.close()


@dataclass(frozen=True, slots=True)
class Settle:
    """Sync the names in a directory to disk before the next step."""

    path: Path
    requirement: str = ""

    @property
    def text(self) -> str:
        """Short description of the change."""
        return "flush names"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        files.fsync_directory(self.path)


def apply_steps(steps: Iterable[FileStep], files: Files) -> None:
    """Carry out steps in order.

    Raises:
        OSError: a step failed; the steps before it are done, and a new plan continues from there.
    """
    for step in steps:
        step.apply(files)


def settled(steps: Iterable[FileStep], directory: Path) -> tuple[FileStep, ...]:
    """Add a sync of the directory after the steps, if there are any."""
    found = tuple(steps)
    return (*found, Settle(directory)) if found else ()


def require_no_links(steps: Iterable[FileStep]) -> None:
    """Refuse steps on a file that is a symbolic link, or whose directory is one (SEG-PDR-026).

    Raises:
        FormatError: a step would change a symbolic link, or write through it.
    """
    for step in steps:
        paths = () if isinstance(step, Settle) else (step.path, getattr(step, "target", step.path))
        for path in chain.from_iterable((path, path.parent) for path in paths):
            if path.is_symlink():
                location, found = Location(str(path)), f"a symbolic link; to {step.text} has to be done at its target"
                raise FormatError(location, "SEG-PDR-026", expected="a file of its own to change", found=found)
