"""The storages that logs are read from: the local file system, or another that is passed to readers; directories.

A plan for a directory is carried out only if the directory has not changed since.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from seglog_format.errors import UsageError, write_errors
from seglog_format.names import printable
from seglog_format.storage.byte_source import open_checked, refuse_whole
from seglog_format.storage.file_reader import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable


if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.storage.byte_source import SourceFile

    SizeCheck: TypeAlias = Callable[[int, str], None]


class FileStatus(NamedTuple):
    """Size and time of a file, which a storage knows without opening the file.

    Attributes:
        size: in bytes.
        modified: when it was last written, in seconds since 1970; None if unknown.
    """

    size: int
    modified: float | None


class LogStorage(Protocol):
    """Files that logs are read from. A path identifies a file only within its storage."""

    @property
    def is_local(self) -> bool:
        """Return whether paths are those of the local file system."""

    def name_of(self, path: Path) -> str:
        """Return the name of a file or directory that errors and rows show."""

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory; no file is opened.

        Raises:
            UsageError: there is no such directory.
            UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
        """

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""

    def tiered_end(self, path: Path) -> int | None:
        """Return the offset after the remote segment that a file belongs to, without opening it; None for a local file.

        If only a part of the remote segment is used, it is the offset after that part.
        """

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file, without opening it.

        Raises:
            UsageError: there is no such file.
            UnreadableError: the disk refuses to answer (SEG-PDR-022).
        """

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a regular file for reading.

        Args:
            path: of the file.
            mapped: map the file, if the storage can and its owner does not cut it (see `open_bytes`).
            check: called with the size and the name before anything is read; it raises an error to refuse the file.

        Raises:
            UsageError: there is no such file.
            UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
        """


class LocalStorage:
    """The local file system."""

    is_local: Final = True

    def name_of(self, path: Path) -> str:
        """Return the path as text."""
        return str(path)

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory, as `scan_directory` does."""
        return scan_directory(directory)

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""
        return path.is_symlink()

    def tiered_end(self, path: Path) -> int | None:  # noqa: ARG002 - no local file is remote
        """Return None."""
        return None

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file, without opening it."""
        try:
            found = path.stat()
        except OSError as error:
            raise refusal_of(str(path), error) from error
        return FileStatus(found.st_size, found.st_mtime)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a regular file, as `open_bytes` does."""
        return open_checked(path, check, mapped=mapped)


LOCAL: Final = LocalStorage()


def read_file(storage: LogStorage, path: Path) -> bytes:
    """Return the content of a file that is decoded whole.

    Raises:
        UsageError: there is no such file.
        UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
        RefusedError: it is too large (see `refuse_whole`).
    """
    with storage.open(path, check=refuse_whole) as source:
        return bytes(source.view(0, source.size))


# -- the entries of a directory: regular files, directories, and others -----------------------------------------------


class SkippedEntry(NamedTuple):
    """A directory entry that is not read: neither a regular file nor a link to one."""

    name: str
    reason: str


class DirectoryEntries(NamedTuple):
    """The entries of a directory, in name order: regular files, directories, and others."""

    files: list[str]
    directories: list[str]
    skipped: tuple[SkippedEntry, ...]


def scan_directory(directory: Path) -> DirectoryEntries:
    """List a directory; no file is opened.

    Raises:
        UsageError: the path is not a directory.
        UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
    """
    files, directories, skipped = [], [], []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                mode, reason = _mode(entry)
                if mode == stat.S_IFREG:
                    files.append(entry.name)
                elif mode == stat.S_IFDIR:
                    directories.append(entry.name)
                else:
                    skipped.append(SkippedEntry(entry.name, reason))
    except OSError as error:
        raise refusal_of(printable(str(directory)), error) from error
    except ValueError as error:  # a NUL character in the name
        msg = f"{printable(str(directory))}: {error}"
        raise UsageError(msg) from error
    by_name = tuple(sorted(skipped, key=lambda entry: entry.name))
    return DirectoryEntries(sorted(files), sorted(directories), by_name)


def _mode(entry: os.DirEntry[str]) -> tuple[int, str]:
    """Return the mode of an entry, or of a link's target; 0 and a reason if it is neither file nor directory."""
    try:
        if entry.is_file():
            return stat.S_IFREG, ""
        if entry.is_dir():
            return stat.S_IFDIR, ""
        if entry.is_symlink() and not Path(entry.path).exists():
            return 0, "a link that leads nowhere"
    except OSError as error:
        return 0, f"a link: {error.strerror}"
    return 0, "neither a regular file nor a directory"


def stays_inside(directory: Path, link: str | os.PathLike[str]) -> bool:
    """Return whether the target of a symbolic link is below a directory."""
    try:
        target = Path(link).resolve(strict=True)
    except (OSError, RuntimeError):  # a broken link, or a loop of links
        return False
    return directory.resolve() in target.parents


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
