"""The entries of a directory: regular files, directories, and others."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

from seglog_format.errors import UsageError
from seglog_format.names import printable
from seglog_format.storage.file_reader import refusal_of


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
