"""Opening of regular files for reading; other kinds of files are refused."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack
from typing import Final

# Without these flags, `open` would wait at a FIFO, a terminal would become that of this process, and Windows would
# translate line ends.
OPEN_FLAGS: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_regular(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Open a regular file for reading; symbolic links are followed.

    Returns:
        A descriptor, which the caller closes, and the file's size in bytes.

    Raises:
        OSError: there is no such file, or it is not a regular one.
        ValueError: the path holds a NUL character.
    """
    descriptor = os.open(path, OPEN_FLAGS)
    with ExitStack() as closing:
        closing.callback(os.close, descriptor)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        closing.pop_all()
    return descriptor, status.st_size
