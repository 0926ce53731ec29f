"""Lock of a broker that runs in a log directory."""

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

    A running broker does. The file itself stays when the broker ends, so its presence means nothing. It is neither
    created nor written; the lock is requested without waiting and released at once. On Windows, where such a lock
    cannot be requested in this way, the answer is always no.
    """
    if sys.platform == "win32":
        return False
    try:
        descriptor = os.open(log_directory / FileKind.LOCK.value, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # not for us to open: then it may well be in use
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
