"""The environment of a writer: files, clock, random numbers and threads, which tests can replace."""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from seglog_format.storage.files import LOCAL_FILES, Files, LocalFiles, LocalHandle

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.byte_source import Buffer


Clock: TypeAlias = Callable[[], int]
"""Milliseconds since 1970."""


class Condition(AbstractContextManager[bool], Protocol):
    """The part of `threading.Condition` that the writer uses: a lock, and waiting for another thread."""

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until another thread notifies, or until a timeout in seconds."""

    def notify_all(self) -> None:
        """Wake all waiting threads, one after the other."""


def system_clock() -> int:
    """Return the time of the computer's clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Files, clock, random numbers and threads.

    Attributes:
        files: the file layer.
        clock: returns the time.
        random: returns a random number from 0 up to, not including, 1; for the jitter of segments.
        make_condition: creates a lock.
        locks_directory: whether to hold the log directory's lock file while writing.

    Examples:
        >>> from seglog_format import Environment, PartitionWriter, new_record
        >>> noon = Environment(clock=lambda: 1_767_268_800_000)
        >>> with PartitionWriter("written/at-noon-0", environment=noon) as writer:
        ...     appended = writer.append([new_record(value=b"lunch")])
        >>> appended.first_offset
        0
    """

    files: Files = LOCAL_FILES
    clock: Clock = system_clock
    random: Callable[[], float] = random.random
    make_condition: Callable[[], Condition] = threading.Condition
    locks_directory: bool = True


# -- a file layer that does not sync, and that can be stopped to simulate the end of a process ------------------------


class UnsyncedHandle(LocalHandle):
    """A file that is never synced, and refuses writes after its file layer was stopped."""

    def __init__(self, handle: LocalHandle, files: UnsyncedFiles) -> None:
        super().__init__(handle.detach(), handle.path)
        self._files = files

    def write_at(self, position: int, data: Buffer) -> None:
        """Write bytes at a position."""
        self._files.check()
        super().write_at(position, data)

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it by zeros."""
        self._files.check()
        super().truncate(size)

    def fsync(self) -> None:
        """Do nothing."""
        self._files.check()


class UnsyncedFiles(LocalFiles):
    """The local file system without syncs, for files that can be created again after a power cut.

    Attributes:
        is_stopped: whether all writes are refused, as if the process had ended; open files can be closed.
    """

    def __init__(self) -> None:
        self.is_stopped = False

    def stop(self) -> None:
        """Make every later operation that changes a file fail."""
        self.is_stopped = True

    def check(self) -> None:
        """Raise an error if the file layer was stopped.

        Raises:
            OSError: the file layer was stopped.
        """
        if self.is_stopped:
            raise OSError(errno.EIO, "the process was stopped")

    def create(self, path: Path, size: int = 0) -> UnsyncedHandle:
        """Create a file of so many zeros, open for writing; replace one of the same name."""
        self.check()
        return UnsyncedHandle(super().create(path, size), self)

    def create_new(self, path: Path, size: int = 0) -> UnsyncedHandle:
        """Create a file of so many zeros, open for writing, under an unused name."""
        self.check()
        return UnsyncedHandle(super().create_new(path, size), self)

    def open_append(self, path: Path) -> UnsyncedHandle:
        """Open an existing file for writing."""
        self.check()
        return UnsyncedHandle(super().open_append(path), self)

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file or directory atomically."""
        self.check()
        super().rename(path, target)

    def publish(self, path: Path, target: Path) -> None:
        """Rename a file to an unused name."""
        self.check()
        super().publish(path, target)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        self.check()
        super().remove(path)

    def fsync_directory(self, path: Path) -> None:
        """Do nothing."""
        del path
        self.check()
