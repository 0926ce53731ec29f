"""The lock on the lock file of a log directory, as a running broker holds it (chapter 11)."""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from seglog_format.errors import UsageError
from seglog_format.names import FileKind

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path

WHOLE_FILE: Final = struct.Struct("hhqqi4x")
"""Lock type, whence, start, length and process of Linux's `struct flock` on 64-bit systems."""

HAS_FILE_LOCKS: Final = sys.platform == "linux" and struct.calcsize("P") == 8  # noqa: PLR2004 - bytes of a pointer
"""Whether a lock can belong to an open file instead of the process."""


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


class DirectoryLock:
    """The lock of a log directory, held until `close`; it excludes brokers and other writers.

    Args:
        log_directory: the directory whose lock file is locked; the file is created if it is missing.

    Raises:
        UsageError: another process or another writer holds the lock.
    """

    def __init__(self, log_directory: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor: int | None = os.open(log_directory / FileKind.LOCK.value, flags, 0o644)
        try:
            _lock(self._descriptor)
        except OSError as error:
            self.forget()
            msg = f"{log_directory} is in use: a broker or another writer holds its lock file"
            raise UsageError(msg) from error
        _HELD.add(self)

    def close(self) -> None:
        """Release the lock; the file stays.

        It does not suffice to close the file: a process that was just forked may still have it open, and with it the
        lock.
        """
        if self._descriptor is not None:
            _unlock(self._descriptor)
        self.forget()

    def forget(self) -> None:
        """Close the file without releasing the lock, which the parent process holds."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


_HELD: Final[WeakSet[DirectoryLock]] = WeakSet()


def _forget_all() -> None:
    """Close all lock files in a forked process without releasing the locks, which its parent holds."""
    for lock in list(_HELD):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _lock(descriptor: int) -> None:
    """Lock the whole file, or fail at once.

    Ordinary record locks belong to the process: if other code in it opens and closes the file, for example to find out
    whether a broker is running, that releases the lock. On Linux the lock can belong to the open file instead.
    """
    if sys.platform == "win32":
        return
    if HAS_FILE_LOCKS:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, WHOLE_FILE.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _unlock(descriptor: int) -> None:
    if sys.platform == "win32":
        return
    if HAS_FILE_LOCKS:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, WHOLE_FILE.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.lockf(descriptor, fcntl.LOCK_UN)
