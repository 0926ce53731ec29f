"""The lock that a running broker holds on its log directory."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from seglog_format.names import FileKind

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path


def is_locked(log_directory: Path) -> bool:
    """Return whether another process holds the log directory's lock file.

    A running broker holds it. The file stays when the broker ends, so its presence proves nothing. This function
    neither creates nor writes the file; it requests the lock without waiting, and releases it at once. On Windows,
    where a lock cannot be requested in this way, it always returns False.
    """
    if sys.platform == "win32":
        return False
    try:
        descriptor = os.open(log_directory / FileKind.LOCK.value, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # without permission to open the file, assume that it is locked
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
