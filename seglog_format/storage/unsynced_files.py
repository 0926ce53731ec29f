"""A file layer that does not sync, and that can be stopped to simulate the end of a process."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from seglog_format.storage.files import LocalFiles, LocalHandle

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.byte_source import Buffer


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
