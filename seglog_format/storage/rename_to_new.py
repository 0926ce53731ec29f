"""Renaming that never replaces a file."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AT_WORKING_DIRECTORY: Final = -100
NO_REPLACE: Final = 1
"""Constants of Linux's `renameat2`: relative paths as usual, and an error if the target exists."""

WITHOUT_SUPPORT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP})
"""Errors of file systems that cannot rename without replacing, or cannot link."""


def rename_to_new(path: Path, target: Path) -> None:
    """Rename a file to an unused name, atomically if the system and the file system can.

    Args:
        path: of the file.
        target: in a directory of the same file system.

    Raises:
        FileExistsError: the name is used, perhaps by a broken symbolic link; nothing has changed.
        OSError: renaming failed.
    """
    if sys.platform == "win32":
        path.rename(target)  # on Windows, this never replaces a file
    elif not _rename_at_once(path, target):
        _link_to_new(path, target)


@cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """Return Linux's `renameat2`, set not to replace a file; None if the C library lacks it."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        function = library.renameat2
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return lambda path, target: int(function(AT_WORKING_DIRECTORY, path, AT_WORKING_DIRECTORY, target, NO_REPLACE))


def _rename_at_once(path: Path, target: Path) -> bool:
    """Rename a file unless the target exists; return False if the file system cannot do that atomically."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(os.fsencode(path), os.fsencode(target)) == 0:
        return True
    number = ctypes.get_errno()
    if number in WITHOUT_SUPPORT:
        return False
    raise OSError(number, os.strerror(number), str(path), None, str(target))


def _link_to_new(path: Path, target: Path) -> None:
    """Rename a file by a hard link; on a file system without hard links, check for the name and then rename.

    Between check and rename no other writer can use the name: writers hold a lock.
    """
    try:
        os.link(path, target, follow_symlinks=False)
    except (OSError, NotImplementedError) as error:
        if not isinstance(error, NotImplementedError) and error.errno not in WITHOUT_SUPPORT:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
        path.rename(target)
    else:
        path.unlink()
