"""Open regular files for reading, and nothing else: a FIFO would block, a terminal would become ours."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, BinaryIO

from seglog_format.storage.file_bytes import OPEN_FLAGS

if TYPE_CHECKING:
    from pathlib import Path


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; symbolic links are followed.

    Raises:
        OSError: there is no such file, or it is not a regular one.
    """
    file = os.fdopen(os.open(path, OPEN_FLAGS), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return file
