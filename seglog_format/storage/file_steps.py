"""Changes to files as values: planned first, shown to whoever asks, then done one after the other.

Each step either has happened or has not, whenever the process dies. A plan made again from what is then on the disk
finishes the work, so that the order of steps is all that a planner has to think about.
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
"""Bytes of a file that are in memory at once while a part of it is copied."""


class FileStep(Protocol):
    """One change. `requirement` is the id of the rule that asks for it."""

    @property
    def path(self) -> Path:
        """The file that changes."""

    @property
    def requirement(self) -> str:
        """Id of the rule; empty for a step that only makes the ones before it last."""

    @property
    def text(self) -> str:
        """What happens to the file, in a few words."""

    def apply(self, files: Files) -> None:
        """Do it.

        Raises:
            OSError: it did not work.
        """


@dataclass(frozen=True, slots=True)
class Remove:
    """A file goes."""

    path: Path
    requirement: str

    @property
    def text(self) -> str:
        """What happens to the file."""
        return "remove"

    def apply(self, files: Files) -> None:
        """Do it."""
        files.remove(self.path)


@dataclass(frozen=True, slots=True)
class Rename:
    """A file gets another name, and takes the place of a file of that name unless the name has to be free.

    Attributes:
        path, target: before and after.
        requirement: id of the rule.
        replaces: a file that has the new name is replaced; if not, the step fails.
    """

    path: Path
    target: Path
    requirement: str
    replaces: bool = True

    @property
    def text(self) -> str:
        """What happens to the file."""
        return f"rename to {self.target.name}"

    def apply(self, files: Files) -> None:
        """Do it."""
        if self.replaces:
            files.rename(self.path, self.target)
        else:
            files.publish(self.path, self.target)


@dataclass(frozen=True, slots=True)
class Truncate:
    """A file ends earlier, and that is on the disk when the step is done."""

    path: Path
    size: int
    requirement: str

    @property
    def text(self) -> str:
        """What happens to the file."""
        return f"cut to {self.size} bytes"

    def apply(self, files: Files) -> None:
        """Do it."""
        handle = files.open_append(self.path)
        try:
            handle.truncate(self.size)
            handle.fsync()
        finally:
            handle.close()


@dataclass(frozen=True, slots=True)
class Replace:
    """A file has this content from now on; after a crash there is the old one or the new one, each whole."""

    path: Path
    data: bytes = field(repr=False)
    requirement: str

    @property
    def text(self) -> str:
        """What happens to the file."""
        return f"write {len(self.data)} bytes"

    def apply(self, files: Files) -> None:
        """Do it."""
        replace_file(files, self.path, self.data)


@dataclass(frozen=True, slots=True)
class Copy:
    """A new file gets a part of another one, and that is on the disk when the step is done."""

    source: Path
    start: int
    end: int
    path: Path
    requirement: str

    @property
    def text(self) -> str:
        """What happens to the file."""
        return f"write bytes {self.start} to {self.end} of {self.source.name}"

    def apply(self, files: Files) -> None:
        """Do it."""
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
    """The names in a directory are on the disk before anything else happens."""

    path: Path
    requirement: str = ""

    @property
    def text(self) -> str:
        """What happens to the directory."""
        return "flush names"

    def apply(self, files: Files) -> None:
        """Do it."""
        files.fsync_directory(self.path)


def apply_steps(steps: Iterable[FileStep], files: Files) -> None:
    """Do the steps in order.

    Raises:
        OSError: one did not work; those before it are done, and planning again goes on from there.
    """
    for step in steps:
        step.apply(files)


def settled(steps: Iterable[FileStep], directory: Path) -> tuple[FileStep, ...]:
    """The steps with a flush of the directory behind them; nothing where there are none."""
    found = tuple(steps)
    return (*found, Settle(directory)) if found else ()


def require_no_links(steps: Iterable[FileStep]) -> None:
    """Refuse steps that would change a symbolic link, or write through one: a file, or its directory (SEG-PDR-026).

    Raises:
        FormatError: one would.
    """
    for step in steps:
        paths = () if isinstance(step, Settle) else (step.path, getattr(step, "target", step.path))
        for path in chain.from_iterable((path, path.parent) for path in paths):
            if path.is_symlink():
                place, found = Location(str(path)), f"a symbolic link; to {step.text} is for you to do at its target"
                raise FormatError(place, "SEG-PDR-026", expected="a file of its own to change", found=found)
