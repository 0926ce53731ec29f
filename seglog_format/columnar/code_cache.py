"""The directories from which compiled code may be loaded: only those in which no other user can store code.

numba stores compiled code as Python pickles. Loading a pickle runs code from it, so a user who can write to the
directory, or replace it, can run code as this user.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = Path(__file__).parent
ENDINGS: Final = (".nbi", ".nbc")
"""Suffixes of numba's files."""


@cache
def refusal(directory: str) -> str | None:
    """Return why code may not be loaded from a directory; None if it may.

    The result is cached in a process: no other user can change the answer None, and any other answer remains safe.

    Args:
        directory: path of an existing directory.

    Returns:
        A sentence that begins with the path that others can change.
    """
    if not hasattr(os, "getuid"):  # on Windows, where modes say nothing
        return None
    absolute = Path(directory).absolute()
    trusted = {0, os.getuid(), PACKAGE.stat().st_uid}  # the owner of the package can change its code anyway
    found = (_danger(path, trusted) for path in (*_ways(absolute), *_cached_files(absolute)))
    return next(filter(None, found), None)


def _ways(absolute: Path) -> Iterator[Path]:
    """Yield the directory and all its parents, by the given paths and by those that symbolic links resolve to."""
    real = absolute.resolve()
    yield from (absolute, *absolute.parents)
    yield from (real, *real.parents)


def _cached_files(absolute: Path) -> Iterator[Path]:
    with os.scandir(absolute) as entries:
        yield from (Path(entry.path) for entry in entries if entry.name.endswith(ENDINGS))


def _danger(path: Path, trusted: set[int]) -> str | None:
    state = path.lstat()
    if state.st_uid not in trusted:
        return f"{path} belongs to another user"
    is_shared = stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX  # as /tmp: users remove only their own
    if state.st_mode & stat.S_IWOTH and not is_shared and not stat.S_ISLNK(state.st_mode):
        return f"{path} can be written by every user"
    return None
